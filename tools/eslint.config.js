/**
 * The rules that a machine can check of how this code reads. Each restriction carries its reason in
 * its message; the import rules between folders are in `dependency-cruiser.cjs`.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'eslint/config';
import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import rxjsX from 'eslint-plugin-rxjs-x';
import tseslint from 'typescript-eslint';
import local from './lint/observable-names.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Folders that must give equal output for equal input, and run in a browser as they are. */
const PURE = ['cells', 'plan', 'render', 'routing', 'snapshot'].map(
  (name) => `src/${name}/**/*.ts`,
);
const OPERATORS = ['src/operators/**/*.ts'];
const ENTRIES = ['src/main.ts', 'src/cli/**/*.ts', 'agent/main.ts'];
const WIRING = ['src/controller.ts', 'src/streams/**/*.ts', 'src/sinks/**/*.ts'];
const TESTS = ['test/**/*.ts', 'bench/**/*.ts'];

const subscribe = {
  selector: 'CallExpression[callee.property.name="subscribe"]',
  message: 'Return the Observable: only main.ts, the CLI, tests and operators subscribe.',
};
const environment = {
  selector: 'MemberExpression[object.name="process"][property.name="env"]',
  message: 'Settings are read once, at the entry (main.ts, src/cli), and passed in.',
};
const clock = {
  selector: 'NewExpression[callee.name="Date"]',
  message: 'No clock here: time comes in as an argument or as an RxJS scheduler.',
};
const asynchronous = {
  selector: ':function[async=true]',
  message: 'No promises in operators: they do not run in virtual time.',
};

const timers = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'performance'].map(
  (name) => ({ name, message: 'Time is an RxJS timer or an injected scheduler.' }),
);
const nodeGlobals = ['process', 'Buffer', 'global', 'require'].map((name) => ({
  name,
  message: 'This folder runs in a browser too.',
}));
const nondeterminism = [
  { object: 'Date', property: 'now', message: clock.message },
  { object: 'Math', property: 'random', message: 'No randomness here: equal input, equal output.' },
  { object: 'crypto', property: 'randomUUID', message: 'No randomness here.' },
];

const trappedOperators = {
  paths: [
    {
      name: 'rxjs',
      importNames: ['debounceTime', 'throttleTime', 'groupBy', 'shareReplay'],
      message: 'Use foldByKey, schedule or latestWins, forEachKey, shareLatest of src/operators.',
    },
  ],
};

/** @type {Partial<import('eslint').Linter.RulesRecord>} */
const sizes = {
  'max-lines': ['error', { max: 300 }],
  complexity: ['error', 10],
  'max-depth': ['error', 3],
  'max-params': ['error', 3],
};

export default defineConfig(
  { ignores: ['node_modules/', 'dist/', '.cache/', 'coverage/', '**/*.d.ts'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.js', '**/*.cjs'],
    extends: [js.configs.recommended],
    languageOptions: {
      globals: { process: 'readonly', console: 'readonly', module: 'writable', URL: 'readonly' },
    },
    rules: sizes,
  },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked, rxjsX.configs.strict],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: root } },
    rules: {
      ...sizes,
      eqeqeq: 'error',
      'no-console': 'error',
      'no-control-regex': 'off', // control characters are what the emitters are there to refuse
      'no-restricted-imports': ['error', trappedOperators],
      // There are no enums here (erasableSyntaxOnly), and looking for them takes a tenth of the time.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowNever: true },
      ],
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
    },
  },
  {
    files: ['src/**/*.ts', 'agent/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', subscribe, environment],
    },
  },
  {
    files: WIRING,
    plugins: { local },
    rules: {
      'local/observable-names': [
        'error',
        { functions: false, methods: false, parameters: true, properties: true, variables: true },
      ],
    },
  },
  {
    files: ['src/controller.ts'],
    rules: { 'max-lines': ['error', { max: 120, skipBlankLines: true, skipComments: true }] },
  },
  {
    files: PURE,
    rules: {
      'no-restricted-syntax': ['error', subscribe, environment, clock],
      'no-restricted-globals': ['error', ...timers, ...nodeGlobals],
      'no-restricted-properties': ['error', ...nondeterminism],
    },
  },
  {
    files: OPERATORS,
    rules: {
      'max-lines': ['error', { max: 100, skipBlankLines: true, skipComments: true }],
      'no-restricted-imports': 'off',
      'no-restricted-syntax': ['error', environment, clock, asynchronous],
      'no-restricted-globals': ['error', ...timers, ...nodeGlobals],
      'no-restricted-properties': ['error', ...nondeterminism],
      'rxjs-x/no-finnish': 'error',
      'rxjs-x/no-sharereplay': 'off',
      'rxjs-x/no-nested-subscribe': 'off', // an operator made of `new Observable` subscribes inside
    },
  },
  { files: ENTRIES, rules: { 'no-restricted-syntax': 'off' } },
  { files: ['src/cli/**/*.ts', 'tools/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: TESTS,
    rules: {
      'max-lines': ['error', { max: 600 }],
      'no-console': 'off',
      'no-restricted-imports': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
      'rxjs-x/no-ignored-error': 'off',
      'rxjs-x/no-nested-subscribe': 'off',
      'rxjs-x/throw-error': 'off', // marbles throw the string 'error'
    },
  },
  prettier,
);
