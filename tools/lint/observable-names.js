/**
 * `rxjs-x/finnish` for values only. The rule asks a `$` of functions that return an Observable too,
 * wherever they are the value of a name; here a name is marked when it is an Observable itself.
 */
import rxjsX from 'eslint-plugin-rxjs-x';

/** @type {any} the two libraries type their rules differently */
const finnish = rxjsX.rules.finnish;

/**
 * @param {any} context
 * @param {{ loc: { start: object } }} descriptor
 * @returns {boolean} whether what is complained of is a function
 */
function isFunction(context, { loc }) {
  const { sourceCode } = context;
  const node = sourceCode.getNodeByRangeIndex(sourceCode.getIndexFromLoc(loc.start));
  return sourceCode.parserServices.getTypeAtLocation(node).getCallSignatures().length > 0;
}

/** @type {import('eslint').ESLint.Plugin} */
export default {
  rules: {
    'observable-names': {
      ...finnish,
      create(/** @type {any} */ context) {
        const report = (/** @type {any} */ descriptor) => {
          if (!isFunction(context, descriptor)) context.report(descriptor);
        };
        return finnish.create(Object.create(context, { report: { value: report } }));
      },
    },
  },
};
