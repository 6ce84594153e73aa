/** Bad objects among many good ones, each bad in a way that people really write (R6). */
import { describe, expect, it } from 'vitest';
import { startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress } from '../../support/objects.ts';
import { configured, Instance, serviceOn, type Shown } from './instance.ts';

const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);

const each = (lines: string): string =>
  `{% cells one in resources.ingresses %}
{% set notes = one.metadata.annotations | default({}) %}
{% set host = one.spec.rules[0].host %}
${lines}
{% endcells %}
`;

/** Lines that the annotation `example.com/NAME` of an Ingress adds. */
const when = (name: string, lines: string): string =>
  `{% if notes["example.com/${name}"] is defined %}
{% set value = notes["example.com/${name}"] %}
${lines}
{% endif %}
`;

const HERE = '{ var(txn.host) -m str {{ host | aclPattern }} }';

/** A configuration with annotations of its own, two of which protect. */
const CONFIG = configured({
  dataplane: { minDeploymentInterval: '100ms' },
  maps: {
    'names.map': { ordered: false, template: each(when('name', '{{ map_entry(value, host) }}')) },
  },
  templateSnippets: {
    'sections-300-resolvers': {
      template: each(
        when('resolvers', 'resolvers {{ value | token }}\n    nameserver one 192.0.2.53:53'),
      ),
    },
    'request-300-notes': {
      template: each(
        when(
          'max-body',
          `    http-request deny deny_status 413 if ${HERE} { req.body_size gt {{ value | to_int }} }`,
        ) +
          when('headers', `    http-request set-header X-Headers {{ value | header }} if ${HERE}`) +
          when('tag', `    http-request set-var(txn.tag) str({{ value | token }}) if ${HERE}`) +
          when(
            'deny',
            `    http-request deny deny_status {{ value | token }} if ${HERE} { path /deny }`,
          ) +
          when('block', `    http-request deny if ${HERE} { path -m reg {{ value | regex }} }`) +
          when('sample', `    http-request set-var(txn.sample) {{ value | token }} if ${HERE}`),
      ),
    },
    'request-200-protection': {
      protective: true,
      template: each(
        when('allow', `    http-request deny if ${HERE} !{ src {{ value | token }} }`) +
          when(
            'auth',
            '{% if resources.secrets.get(one.metadata.namespace, value) is undefined %}' +
              '{{ fail("the Secret of example.com/auth does not exist") }}{% endif %}',
          ),
      ),
    },
  },
});

const GOOD = 980;
const hostOf = (name: string): string => `${name}.example.com`;
const route = (name: string, notes: Readonly<Record<string, string>> = {}): object =>
  ingress(name, {
    rules: [[hostOf(name), '/', 'shop:80']],
    annotations: Object.fromEntries(
      Object.entries(notes).map(([note, value]) => [`example.com/${note}`, value]),
    ),
  });

/** What good Ingresses have in the same annotations. */
const VALID: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'max-body': '1000' },
  { headers: 'one two' },
  { tag: 'blue' },
  { deny: '403' },
  { block: '^/hidden' },
  { sample: 'src' },
  { allow: '127.0.0.0/8' },
];

const good = Array.from({ length: GOOD }, (_, index) =>
  route(`good-${String(index)}`, {
    ...VALID[index % VALID.length],
    ...(index === 7 && { resolvers: 'shared' }),
    ...(index === 8 && { name: 'taken' }),
  }),
);

/** Kind of fault → annotations of two Ingresses, and what their hosts answer. */
const BAD: Readonly<Record<string, readonly [first: object, second: object, status: number]>> = {
  'a word where a number belongs': [{ 'max-body': 'unlimited' }, { 'max-body': '10m' }, 404],
  'an empty list of headers': [{ headers: '' }, { headers: '  ' }, 404],
  'a line feed that would begin a line': [
    { tag: 'x\n    http-request deny' },
    { tag: 'x http-request' },
    404,
  ],
  'a status that HAProxy does not know': [{ deny: '999' }, { deny: '99' }, 404],
  'a pattern that is none': [{ block: '(' }, { block: '*' }, 404],
  'a sample that HAProxy does not know': [{ sample: 'no_such' }, { sample: 'nor_this' }, 404],
  'a value that is too long for a line': [
    { headers: 'x'.repeat(20_000) },
    { tag: 'y'.repeat(20_000) },
    404,
  ],
  'a protection that HAProxy refuses': [{ allow: '10.0.0.0/99' }, { allow: 'everybody' }, 503],
  'a protection whose Secret is missing': [{ auth: 'missing' }, { auth: 'absent' }, 503],
};

/** Each good by itself, and at fault together with one that is served; HAProxy names the good one, and the render nobody. */
const TOGETHER: readonly Readonly<Record<string, string>>[] = [
  { resolvers: 'shared' },
  { name: 'taken' },
];

const bad = Object.values(BAD).flatMap(([first, second, status], kind) =>
  [first, second].map((notes, which) => ({
    name: `bad-${String(kind)}-${String(which)}`,
    notes: notes as Readonly<Record<string, string>>,
    status,
  })),
);

const quarantined = async (instance: Instance): Promise<ReadonlyMap<string, Shown>> => {
  const { render } = await instance.vars();
  const told = render?.problems.filter(({ reason }) => reason === 'Quarantined') ?? [];
  return new Map(told.map((problem) => [problem.object?.name ?? '', problem]));
};

const statuses = async (instance: Instance, names: readonly string[]): Promise<unknown> => {
  const found: Record<string, number> = {};
  for (const name of names) found[name] = (await instance.get(hostOf(name))).status;
  return found;
};

const secret = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'default', name },
  data: {},
});

describe('quarantine', () => {
  it('R6: of 1,000 Ingresses with twenty bad ones of ten kinds 980 are served and twenty are told', async () => {
    const one = await startEcho('one');
    const instance = await Instance.start({
      haproxy: newest,
      manifests: {
        'config.yaml': [CONFIG],
        'shop.yaml': serviceOn('shop', [one.port]),
        'good.yaml': good,
        ...Object.fromEntries(
          bad.map(({ name, notes }) => [`bad/${name}.yaml`, [route(name, notes)]]),
        ),
      },
    });
    const open = async (): Promise<boolean> => (await instance.vars()).gate.phase === 'open';
    // Those that are bad by themselves come with the good ones, the others when those are served.
    await instance.until('the gate to open', open);
    TOGETHER.forEach((notes, index) => {
      const more = Array.from({ length: 20 }, (_, at) =>
        route(`more-${String(index)}-${String(at)}`),
      );
      const culprit = route(`a-together-${String(index)}`, notes);
      instance.write(`together/${String(index)}.yaml`, [...more, culprit]);
    });
    const names = [...bad.map(({ name }) => name), 'a-together-0', 'a-together-1'].sort();
    await instance.until(
      'all twenty to be told',
      async () => (await quarantined(instance)).size >= names.length,
    );
    await instance.until('the gate to open', open);
    for (const index of [0, 1]) await instance.serves(hostOf(`more-${String(index)}-19`), '/', 200);
    expect([...(await quarantined(instance)).keys()].sort()).toStrictEqual(names);
    for (const problem of (await quarantined(instance)).values()) {
      expect(problem.message).toMatch(/^(It is left out|Its routes answer 503), because/);
      expect(problem.nextStep).not.toBe('');
    }
    expect(await statuses(instance, names)).toStrictEqual({
      ...Object.fromEntries(bad.map(({ name, status }) => [name, status])),
      'a-together-0': 404,
      // It is not known which template is at fault, so it may be one that protects.
      'a-together-1': 503,
    });
    const served = await Promise.all(
      Array.from({ length: GOOD }, (_, index) => instance.get(hostOf(`good-${String(index)}`))),
    );
    expect(served.filter(({ status }) => status !== 200)).toStrictEqual([]);
    expect(
      instance.messages().filter((message) => message.includes('starting it again')),
    ).toStrictEqual([]);

    // Whoever starts next knows them, and lets nothing of them out.
    await instance.stop();
    instance.forgetOutput();
    await instance.up();
    expect([...(await quarantined(instance)).keys()].sort()).toStrictEqual(names);
    await instance.line(/^checked .*: passed/);
    expect(instance.messages().filter((message) => message.includes(': refused'))).toStrictEqual(
      [],
    );
    const haproxy = instance.master();

    // The cure lies in another object.
    instance.write('secrets.yaml', [secret('missing')]);
    await instance.serves(hostOf('bad-8-0'), '/', 200);
    expect(await quarantined(instance)).not.toContain('bad-8-0');
    // Or in the object itself, or in its partner.
    instance.write('bad/bad-0-0.yaml', [route('bad-0-0', { 'max-body': '10' })]);
    await instance.serves(hostOf('bad-0-0'), '/', 200);
    for (const { name } of bad) instance.write(`bad/${name}.yaml`, [route(name)]);
    for (const index of [0, 1]) instance.remove(`together/${String(index)}.yaml`);
    await instance.until(
      'nobody in quarantine',
      async () => (await quarantined(instance)).size === 0,
    );
    for (const { name } of bad) await instance.serves(hostOf(name), '/', 200);
    expect(instance.master()).toBe(haproxy);
    await one.stop();
  });
});
