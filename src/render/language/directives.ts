/**
 * What HAProxy reads at a position of a line: which arguments of which directives are log formats, sample expressions or
 * patterns (configuration manual of HAProxy 3.0 to 3.4: 4.2, 4.4, 7.1, 8.2.6). What is not in these tables is unknown:
 * a word, of which nothing else is claimed.
 */
import { HOLE } from './line-state.ts';
import type { LinePlace } from './places.ts';

type Argument = 'word' | 'logFormat' | 'sample' | 'pattern' | 'unknown';

interface Grammar {
  /** Arguments that come first, in their order. */
  readonly args?: readonly Argument[];
  /** Words that take arguments, wherever they stand behind the first ones. */
  readonly options?: Readonly<Record<string, readonly Argument[]>>;
  /** All other words. */
  readonly rest: Argument;
}

const grammar = (args: readonly Argument[], rest: Argument = 'unknown'): Grammar => ({
  args,
  rest,
});

const each = (names: string, value: Grammar): [string, Grammar][] =>
  names.split(' ').map((name) => [name, value]);

/** Answers that HAProxy itself makes. */
const REPLY: Grammar = {
  options: {
    ...{ status: ['word'], deny_status: ['word'], 'content-type': ['word'], string: ['word'] },
    ...{ errorfile: ['word'], errorfiles: ['word'], file: ['word'], 'lf-file': ['word'] },
    ...{ 'lf-string': ['logFormat'], hdr: ['word', 'logFormat'] },
  },
  rest: 'unknown',
};

const REDIRECT: Grammar = {
  options: {
    ...{ location: ['logFormat'], prefix: ['logFormat'], scheme: ['logFormat'], code: ['word'] },
    ...{ 'set-cookie': ['word'], 'set-cookie-fmt': ['logFormat'], 'clear-cookie': ['word'] },
  },
  rest: 'unknown',
};

/** Actions of `http-request`, `http-response`, `http-after-response`, `tcp-request`, `tcp-response`, `quic-initial`. */
const ACTIONS: ReadonlyMap<string, Grammar> = new Map([
  ...each('set-header add-header early-hint', grammar(['word', 'logFormat'])),
  ...each('replace-header replace-value', grammar(['word', 'word', 'logFormat'])),
  ...each('replace-path replace-pathq replace-uri', grammar(['word', 'logFormat'])),
  ...each('set-path set-pathq set-query set-uri set-method', grammar(['logFormat'])),
  ...each('set-var-fmt add-acl del-acl del-map', grammar(['logFormat'])),
  ...each('set-map', grammar(['logFormat', 'logFormat'])),
  ...each('return deny tarpit', REPLY),
  ...each('redirect', REDIRECT),
  ...each('set-var capture track-sc0 track-sc1 track-sc2 do-resolve', grammar(['sample'])),
  ...each('set-src set-dst set-src-port set-dst-port', grammar(['sample'])),
  ...each('set-priority-class set-priority-offset', grammar(['sample'])),
  ...each('auth set-status', { options: { realm: ['word'], reason: ['word'] }, rest: 'word' }),
  ...each('del-header', { options: { '-m': ['word'] }, rest: 'word' }),
  ...each('cache-use cache-store use-service set-log-level set-nice', grammar(['word'])),
]);

const EXPECT: Grammar = {
  options: {
    ...{ 'on-success': ['logFormat'], 'on-error': ['logFormat'], 'string-lf': ['logFormat'] },
    ...{ 'binary-lf': ['logFormat'], 'name-lf': ['logFormat'], 'value-lf': ['logFormat'] },
    ...{ comment: ['word'], string: ['word'], rstring: ['word'] },
  },
  rest: 'unknown',
};

/** What `http-check` and `tcp-check` do. */
const CHECKS: ReadonlyMap<string, Grammar> = new Map([
  ...each('expect', EXPECT),
  ...each('comment', grammar(['word'])),
  ...each('send-lf send-binary-lf set-var-fmt', grammar(['logFormat'])),
  ...each('set-var', grammar(['sample'])),
]);

const SEND: Grammar = {
  options: {
    ...{ meth: ['word'], uri: ['word'], ver: ['word'], body: ['word'], comment: ['word'] },
    ...{ 'uri-lf': ['logFormat'], 'body-lf': ['logFormat'], hdr: ['word', 'logFormat'] },
  },
  rest: 'unknown',
};

const WORDS: Grammar = { rest: 'word' };
const SERVER: Grammar = {
  options: { sni: ['sample'], 'pool-conn-name': ['sample'] },
  rest: 'word',
};

/** Keywords at the start of a line. */
const KEYWORDS: ReadonlyMap<string, Grammar> = new Map([
  ...each('log-format log-format-sd error-log-format unique-id-format', grammar(['logFormat'])),
  ...each('use_backend use-server', grammar(['logFormat'])),
  ...each('set-param set-var-fmt', grammar(['word', 'logFormat'])),
  ...each('set-var', grammar(['word', 'sample'])),
  ...each('http-error', REPLY),
  ...each('on', { options: { format: ['logFormat'], sd: ['logFormat'] }, rest: 'word' }),
  ...each('server default-server server-template', SERVER),
  ...each(
    'bind timeout maxconn mode log log-tag default_backend retries errorfile errorfiles',
    WORDS,
  ),
  ...each('backend frontend listen defaults userlist resolvers peers cache ring mailers', WORDS),
  ...each('user group nameserver peer mailer cookie description node hash-type stick-table', WORDS),
  ...each('default-path hard-stop-after crt-base ca-base key-base chroot pidfile', WORDS),
  ...each('setenv presetenv lua-load lua-load-per-thread lua-prepend-path monitor-uri', WORDS),
  ...each('unique-id-header http-send-name-header dynamic-cookie-key fullconn backlog', WORDS),
  ...each('ssl-default-bind-ciphers ssl-default-bind-ciphersuites ssl-default-bind-options', WORDS),
  ...each('ssl-default-server-ciphers ssl-default-server-ciphersuites', WORDS),
]);

/** Directives whose second word says what is done, and where that word stands. */
const RULES: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ['http-request', undefined],
  ['http-response', undefined],
  ['http-after-response', undefined],
  ['quic-initial', undefined],
  ['tcp-request', ['content', 'connection', 'session']],
  ['tcp-response', ['content']],
]);

/**
 * What stands behind some complete words of a line, at the end of the word that is being read (undefined between words). An
 * open quote or comment is not its business.
 */
export const placeInLine = (words: readonly string[], word: string | undefined): LinePlace => {
  const [first, ...rest] = withoutModifier(words);
  if (first === undefined) return word === undefined ? 'lineStart' : 'unknown';
  if (first === 'acl') return narrowed(aclArgument(rest), word);
  const inside = RULES.has(first) ? ruleOf(first, rest) : bodyOf(first, rest);
  if (inside === 'unknown') return 'unknown';
  if (inside === 'action') return hasOpenParenthesis(word) ? 'expression' : 'unknown';
  return narrowed(argumentIn(inside.grammar, inside.words), word);
};

/** `no` and `default` stand before the keyword. */
const withoutModifier = (words: readonly string[]): readonly string[] =>
  words[0] === 'no' || words[0] === 'default' ? words.slice(1) : words;

interface Body {
  readonly grammar: Grammar;
  readonly words: readonly string[];
}

const UNKNOWN: Grammar = { rest: 'unknown' };
const bare = (action: string): string => action.split('(', 1)[0] ?? '';

const ruleOf = (first: string, rest: readonly string[]): Body | 'action' | 'unknown' => {
  const phases = RULES.get(first);
  const words = phases === undefined ? rest : rest.slice(1);
  if (phases !== undefined && !phases.includes(rest[0] ?? '')) return 'unknown';
  const [action, ...args] = words;
  if (action === undefined) return 'action';
  return { grammar: ACTIONS.get(bare(action)) ?? UNKNOWN, words: args };
};

const bodyOf = (first: string, rest: readonly string[]): Body | 'action' => {
  if (first !== 'http-check' && first !== 'tcp-check') {
    return { grammar: KEYWORDS.get(first) ?? UNKNOWN, words: rest };
  }
  const [step, ...words] = rest;
  if (step === undefined) return 'action';
  if (step === 'send') return { grammar: first === 'http-check' ? SEND : grammar(['word']), words };
  return { grammar: CHECKS.get(bare(step)) ?? UNKNOWN, words };
};

const argumentIn = ({ args, options, rest }: Grammar, words: readonly string[]): Argument => {
  let pending = args ?? [];
  for (const [index, word] of words.entries()) {
    if (pending.length > 0) pending = pending.slice(1);
    else if (word === 'if' || word === 'unless') return conditionArgument(words.slice(index + 1));
    else if (word.includes(HOLE)) return 'unknown';
    else pending = argumentsOf(word, options);
  }
  return pending[0] ?? rest;
};

const argumentsOf = (word: string, options: Grammar['options'] = {}): readonly Argument[] => {
  if (Object.hasOwn(options, word)) return options[word] ?? [];
  // The only option with a name and an argument in one.
  return word.startsWith('set-proxy-v2-tlv-fmt(') ? ['logFormat'] : [];
};

/** Behind `if`: names of ACLs, and anonymous ones in braces. */
const conditionArgument = (words: readonly string[]): Argument => {
  let start: number | undefined;
  for (const [index, word] of words.entries()) {
    if (start === undefined) start = word === '{' || word === '!{' ? index + 1 : undefined;
    else if (word === '}') start = undefined;
  }
  return start === undefined ? 'unknown' : testArgument(words.slice(start));
};

const aclArgument = ([name, ...words]: readonly string[]): Argument =>
  name === undefined ? 'word' : testArgument(words);

const FLAGS_WITH_ARGUMENT = new Set(['-m', '-f', '-u']);

/** Of an ACL: the criterion, flags, then patterns. */
const testArgument = ([criterion, ...words]: readonly string[]): Argument => {
  if (criterion === undefined) return 'sample';
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? '';
    if (!word.startsWith('-')) return 'pattern';
    // Behind it a dash means nothing any more.
    if (word === '--') return 'unknown';
    if (!FLAGS_WITH_ARGUMENT.has(word)) continue;
    index += 1;
    if (index === words.length) return 'unknown';
  }
  return 'pattern';
};

/** What the characters of the word itself add. */
const narrowed = (argument: Argument, word: string | undefined): LinePlace => {
  switch (argument) {
    case 'logFormat':
      return isInBrackets(word) ? 'expression' : 'logFormat';
    case 'sample':
      return 'expression';
    case 'pattern':
      // A flag or a brace would have to begin the word.
      return word === undefined || word === '' || word.startsWith('-') ? 'pattern' : 'word';
    default:
      return argument;
  }
};

const hasOpenParenthesis = (word = ''): boolean => word.split('(').length > word.split(')').length;

/** Behind `%[` and before its `]`; `%%[` is text. */
const isInBrackets = (word = ''): boolean => {
  const opened = /(?<!%)(?:%%)*%(?:\([^)]*\))?(?:\{[^}]*\})?\[[^\]]*$/;
  return opened.test(word);
};
