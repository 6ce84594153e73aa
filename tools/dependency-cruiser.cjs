/**
 * Which folder may import which. Imports point inward: what decides knows nothing of what acts.
 */

/** These run in a browser too: no Node built-in, no stream library, no transport. */
const PURE = '^src/(quarantine|render|routing|snapshot|cells|plan)/';

/** @param {string} comment @param {object} rule */
const forbid = (comment, rule) => ({ severity: 'error', comment, ...rule });

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    forbid('Modules that need each other are one module, or one of them knows too much.', {
      name: 'no-cycles',
      from: {},
      to: { circular: true },
    }),
    forbid('An import that does not resolve.', {
      name: 'resolvable',
      from: {},
      to: { couldNotResolve: true },
    }),
    forbid('Operators are generic: RxJS and each other, nothing of this product.', {
      name: 'operators-import-rxjs-only',
      from: { path: '^src/operators/' },
      to: { pathNot: ['^src/operators/', '^node_modules/rxjs/'] },
    }),
    forbid(
      'The agent decides nothing, so it needs nothing: Node built-ins and what both sides share.',
      {
        name: 'agent-imports-builtins-and-protocol-only',
        from: { path: '^agent/' },
        to: { pathNot: ['^agent/', '^src/(protocol|mtls)/'], dependencyTypesNot: ['core'] },
      },
    ),
    forbid('Both ends of mutual TLS read and check their credentials with the same few lines.', {
      name: 'mtls-imports-builtins-only',
      from: { path: '^src/mtls/' },
      to: { pathNot: '^src/mtls/', dependencyTypesNot: ['core'] },
    }),
    forbid('The agent is a process of its own, started from its own entry.', {
      name: 'nobody-imports-agent',
      from: { pathNot: '^(agent|test)/' },
      to: { path: '^agent/' },
    }),
    forbid('The protocol is plain data and constants.', {
      name: 'protocol-imports-nothing',
      from: { path: '^src/protocol/' },
      to: { pathNot: '^src/protocol/' },
    }),
    forbid('Pure folders run in a browser: no Node built-in.', {
      name: 'pure-imports-no-builtin',
      from: { path: PURE },
      to: { dependencyTypes: ['core'] },
    }),
    forbid('Pure folders know neither streams nor transports, only these libraries.', {
      name: 'pure-imports-few-packages',
      from: { path: PURE },
      to: {
        path: '^node_modules/',
        pathNot: '^node_modules/(@types/)?(nunjucks|immutable|re2js)/',
        dependencyTypesNot: ['type-only'], // a type does not exist at run time
      },
    }),
    forbid('Pure folders import each other and the protocol, never what acts.', {
      name: 'pure-imports-pure',
      from: { path: PURE },
      to: { path: '^src/', pathNot: [PURE, '^src/protocol/'] },
    }),
    forbid('The gate is a pure machine; only the checker, and what it runs in, acts.', {
      name: 'gate-machine-is-pure',
      from: {
        path: '^src/gate/',
        pathNot: '^src/gate/(checker|mirror|run-confined|sandbox)\\.ts$',
      },
      to: { dependencyTypes: ['core', 'npm'] },
    }),
    forbid('It costs 80 MB of memory: exactly one file imports it, and only when it runs.', {
      name: 'client-node-in-one-file',
      from: { path: '^(src|bench|tools)/', pathNot: '^src/kube/kube-config\\.ts$' },
      to: { path: '^node_modules/@kubernetes/' },
    }),
    forbid('Import what you need from where it is; a barrel makes cycles and a slow start.', {
      name: 'no-barrels',
      from: {},
      to: { path: '^(src|agent)/.*/index\\.ts$', pathNot: '^src/protocol/' },
    }),
    forbid('What users run does not import what developers run.', {
      name: 'product-imports-product',
      from: { path: '^(src|agent)/' },
      to: { path: '^(test|bench|tools)/' },
    }),
    forbid('What the product imports is a dependency, not a devDependency.', {
      name: 'product-needs-no-dev-dependency',
      from: { path: '^(src|agent)/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        // A type does not exist at run time.
        dependencyTypesNot: ['type-only'],
        pathNot: '^node_modules/@types/',
      },
    }),
  ],
  options: {
    doNotFollow: { path: '^node_modules/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      extensions: ['.ts', '.js', '.cjs', '.json'],
    },
  },
};
