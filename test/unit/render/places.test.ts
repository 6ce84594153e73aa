import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EMITTERS } from '../../../src/render/language/emitters.ts';
import { fits, type LinePlace } from '../../../src/render/language/places.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { HEAD, refusedProblems, type TemplateParts } from '../../support/templates.ts';

const extraContext = { a: 'x', b: 'y', flag: true, list: ['x'], size: 1 };

const problemsOf = (template: string, parts: TemplateParts = {}): readonly Problem[] =>
  refusedProblems({ extraContext, ...parts, main: `${HEAD}${template}` });

/** What is told, as `message (source:line:column)`. */
const told = (template: string, parts: TemplateParts = {}): string[] =>
  problemsOf(template, parts).map(({ message, place }) => {
    const { source = '', line = 0, column = 0 } = place ?? {};
    return `${message} (${source}:${String(line)}:${String(column)})`;
  });

const A = '{{ extraContext.a';

describe('an emitter that does not fit its place is refused when the set is loaded (P9)', () => {
  test.each([
    [`    ${A} | token }} x`, 'the emitter "token" does not fit at the start of a line'],
    [`log-tag "x ${A} | quoted }}"`, '"quoted" does not fit inside double quotes; "token" does'],
    [`log-tag 'x ${A} | quoted }}'`, '"quoted" does not fit inside single quotes; "token" does'],
    [`log-tag "it's ${A} | quoted }}"`, 'inside double quotes'],
    [`log-tag 'a "b ${A} | quoted }}'`, 'inside single quotes'],
    [`log-tag "a \\" ${A} | quoted }}"`, 'inside double quotes'],
    [`log-tag "\\\\" "${A} | quoted }}"`, 'inside double quotes'],
    [`log-tag 'a\\' "${A} | quoted }}"`, 'inside double quotes'],
    [`# it's ${A} | mapKey }}`, '"mapKey" does not fit in a comment; "comment" does'],
    [`log-tag x#y ${A} | pem }}`, 'in a comment'],
    [`capture request header ${A} | comment }} len 10`, 'in a line of the configuration; "quoted"'],
    [`http-request lua.f ${A} | comment }}`, '"comment" does not fit in a line'],
    [`http-request deny if ${A} | comment }}`, '"comment" does not fit in a line'],
    [`log-tag a\\${A} | quoted }}`, 'directly behind a backslash; no emitter does'],
    [`log-tag "a\\${A} | quoted }}"`, 'directly behind a backslash'],
    [`new-keyword a\\${A} | token }}`, 'directly behind a backslash'],
    [`http-request set-var(txn.team) ${A} | quoted }}`, 'inside a sample expression; "token"'],
    [`http-request set-var(txn.team) 'a'${A} | quoted }}`, 'inside a sample expression'],
    [`http-request deny if { ${A} | quoted }} -m found }`, 'inside a sample expression'],
    [`acl a ${A} | aclPattern }} x`, 'inside a sample expression'],
    [`server a 192.0.2.1:80 sni ${A} | quoted }}`, 'inside a sample expression'],
    [`log-tag ${A} | comment }}`, '"comment" does not fit as a word'],
    [`log-tag \\# ${A} | comment }}`, '"comment" does not fit as a word'],
    [`log-tag "#" ${A} | comment }}`, '"comment" does not fit as a word'],
    [
      `log-tag ${A} | logFormat }}`,
      '"logFormat" does not fit as a word that HAProxy takes as it is',
    ],
    [`log-tag ${A} | mapKey }}`, '"mapKey" does not fit as a word'],
    [`log-tag ${A} | mapValue }}`, '"mapValue" does not fit as a word'],
    [`new-keyword ${A} | mapValue }}`, '"mapValue" does not fit in a line of the configuration'],
    [`log-tag ${A} | pem }}`, '"pem" does not fit as a word'],
    [`log-format ${A} | quoted }}`, '"quoted" does not fit in a log format; "logFormat" does'],
    [`log-format "%ci "${A} | quoted }}`, '"quoted" does not fit in a log format'],
    [`log-format a\\ ${A} | regex }}`, '"regex" does not fit in a log format'],
    [`use_backend ${A} | quoted }} if TRUE`, 'in a log format'],
    [`http-request set-header X-A ${A} | quoted }}`, 'in a log format'],
    [`http-response add-header X-A x${A} | aclPattern }}`, 'in a log format'],
    [`http-after-response replace-header X-A ^a$ ${A} | quoted }}`, 'in a log format'],
    [`http-request set-path ${A} | quoted }} if TRUE`, 'in a log format'],
    [`http-request redirect code 301 location ${A} | quoted }}`, 'in a log format'],
    [`http-request return status 200 lf-string ${A} | quoted }}`, 'in a log format'],
    [`http-request return status 200 string x hdr X-A ${A} | quoted }}`, 'in a log format'],
    [`http-request deny status 403 hdr X-A ${A} | quoted }}`, 'in a log format'],
    [`http-request set-var-fmt(txn.a) ${A} | quoted }}`, 'in a log format'],
    [`http-request set-map(m.map) x ${A} | quoted }}`, 'in a log format'],
    [`tcp-request content set-var-fmt(txn.a) ${A} | quoted }}`, 'in a log format'],
    [`unique-id-format ${A} | quoted }}`, 'in a log format'],
    [`http-check send uri-lf ${A} | quoted }}`, 'in a log format'],
    [`http-check send meth GET hdr X-A ${A} | quoted }}`, 'in a log format'],
    [`tcp-check send-lf ${A} | quoted }}`, 'in a log format'],
    [`server a 192.0.2.1:80 set-proxy-v2-tlv-fmt(0x20) ${A} | quoted }}`, 'in a log format'],
    [`http-request return status 200 string ${A} | logFormat }}`, '"logFormat" does not fit as a'],
    [`http-request set-header ${A} | header }} x`, '"header" does not fit as a word'],
    [`http-request replace-path ${A} | logFormat }} x`, '"logFormat" does not fit as a word'],
    [`http-request set-header X-A %[str(${A} | quoted }})]`, 'inside a sample expression; "token"'],
    [`http-request set-var(txn.a) str(${A} | quoted }})`, '"quoted" does not fit inside a sample'],
    [`http-request set-var(txn.${A} | quoted }}) src`, '"quoted" does not fit inside a sample'],
    [`http-request deny if { req.hdr(${A} | quoted }}) -m found }`, 'inside a sample expression'],
    [`http-request deny if { path ${A} | quoted }} }`, '"quoted" does not fit as a pattern of an'],
    [
      `http-request deny if x !{ path -i a ${A} | quoted }} }`,
      'as a pattern of an ACL; "aclPattern"',
    ],
    [`acl x path -m beg ${A} | quoted }}`, 'as a pattern of an ACL'],
    [`use_backend x if { path ${A} | logFormat }} }`, '"logFormat" does not fit as a pattern'],
    [`no log-tag "${A} | quoted }}"`, 'inside double quotes'],
  ])('%s', (template, message) => {
    const found = told(`${template}\n`);
    expect(found.join('\n')).toContain(message);
    expect(found).toHaveLength(1);
  });

  test('with its place in the template, a reason and what to do', () => {
    expect(problemsOf(`defaults\n    log-tag "a ${A} | quoted }}"\n`)).toEqual([
      {
        severity: 'error',
        reason: 'EmitterMisplaced',
        message: 'the emitter "quoted" does not fit inside double quotes; "token" does.',
        nextStep:
          'Use "token", or close the quotes before it: what follows a quote directly belongs to the same word.',
        place: { source: 'main', line: 4, column: 36 },
      },
    ]);
  });
});

describe('an emitter that fits is let through (P9)', () => {
  test.each([
    `log-tag ${A} | quoted }}\n`,
    `log-tag ${A} | token }} ${A} | path }} ${A} | regex }} ${A} | aclPattern }}\n`,
    `log-tag x${A} | quoted }}y\n`,
    `log-tag "x"${A} | quoted }}'y'\n`,
    `log-tag "${A} | token }} '${A} | path }}'"\n`,
    `# it's "${A} | comment }} ${A} | token }}\n`,
    `log-tag x # ${A} | comment }}\nlog-tag ${A} | quoted }}\n`,
    `log-tag x \\" ${A} | quoted }}\n`,
    `log-tag x \\' ${A} | quoted }}\n`,
    `log-tag '\\' ${A} | quoted }}\n`,
    `log-format "%ci "${A} | logFormat }}" %[src]"\n`,
    `log-format %ci\\ ${A} | header }}\n`,
    `log-format %%[${A} | logFormat }}\n`,
    `log-format %[src]${A} | logFormat }}\n`,
    `log-format %{+Q}[str(${A} | token }})]\n`,
    `http-request set-header X-A ${A} | header }} if { path ${A} | aclPattern }} }\n`,
    `http-request set-header X-A x if { path -i -m beg -- ${A} | quoted }} }\n`,
    `http-request set-header X-A x if { path /x${A} | quoted }} }\n`,
    `http-request set-header X-A x if { path_reg ${A} | regex }} }\n`,
    `http-request deny if { src -f ${A} | path }} }\n`,
    `http-request return status 200 content-type text/plain string ${A} | quoted }}\n`,
    `http-request return lf-string ${A} | logFormat }} hdr ${A} | quoted }} ${A} | header }}\n`,
    `http-request replace-path ${A} | regex }} ${A} | logFormat }}\n`,
    `http-request set-var(txn.a) str(${A} | token }})\n`,
    `http-request set-var(txn.a) path,map_str(${A} | path }},${A} | token }})\n`,
    `http-request auth realm ${A} | quoted }}\n`,
    `http-request lua.some ${A} | quoted }} ${A} | logFormat }}\n`,
    `new-keyword ${A} | quoted }} ${A} | logFormat }} x(${A} | quoted }})\n`,
    `http-request new-action ${A} | quoted }} ${A} | logFormat }}\n`,
    `description some(${A} | quoted }})\n`,
    `http-check expect hdr name ${A} | quoted }} value-lf ${A} | logFormat }}\n`,
    `tcp-request content accept if { req.len gt ${A} | token }} }\n`,
    `bind ${A} | token }}:{{ extraContext.size }} ssl crt {{ path("x", "cert") }}\n`,
    `log-tag "\${HOME[*]}" ${A} | logFormat }}\n`,
    `log-tag a\\\\${A} | quoted }}\n`,
    `log-tag 'a\\'${A} | quoted }}\n`,
    `# http-request set-header X-A ${A} | header }}\n`,
    `# acl a path ${A} | regex }} ${A} | aclPattern }} ${A} | quoted }} ${A} | logFormat }}\n`,
    `log-tag x#y ${A} | header }}\n`,
    `http-request set-var(txn.a) ${A} | token }}\n`,
    `{{ [extraContext.a] | join(" ") }} ${A} | comment }}\n`,
  ])('%s', (template) => {
    expect(told(template)).toEqual([]);
  });
});

test('docs/templates.md tells which emitter fits where', () => {
  const doc = readFileSync(new URL('../../../docs/templates.md', import.meta.url), 'utf8');
  const rows = doc
    .slice(doc.indexOf('#### Which emitter fits where'))
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const columns: readonly LinePlace[] = [
    ...(['word', 'logFormat', 'pattern', 'expression', 'doubleQuotes', 'comment'] as const),
    'lineStart',
  ];
  const told = rows.slice(0, 11).map(([, emitter, ...cells]) => [emitter, ...cells.slice(0, 7)]);
  const known = told.map(([emitter = '']) => [
    emitter,
    ...columns.map((place) => (fits(emitter, place) ? 'yes' : 'no')),
  ]);
  expect(told).toEqual(known);
  const named = [...told.map(([emitter]) => emitter), 'text'].sort();
  expect(named).toEqual(Object.keys(EMITTERS).sort());
});
