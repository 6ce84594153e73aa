import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFailed } from 'vitest';
import { type EchoBackend, startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { makeKeyPair } from '../../support/key-pairs.ts';
import { ingress, service, tlsSecret } from '../../support/objects.ts';
import { configured, Instance, serviceOn, type Shown, type Vars } from './instance.ts';

const HOST = 'shop.example.com';
const [{ binary } = { binary: '' }] = haproxyVersions().slice(-1);

/** One instance for all cases: what was served before all of them is served after each. */
let instance: Instance;
let one: EchoBackend;

beforeAll(async () => {
  one = await startEcho('one');
  instance = await Instance.prepareShared({
    haproxy: binary,
    manifests: {
      'config.yaml': [configured({ dataplane: { minDeploymentInterval: '100ms' } })],
      'shop.yaml': serviceOn('shop', [one.port]),
      'ingress.yaml': [ingress('shop', { rules: [[HOST, '/', 'shop:80']] })],
    },
  });
  await instance.up();
});

afterEach(async () => {
  await instance.serves(HOST, '/', '"one"');
  expect((await instance.vars()).gate.phase).toBe('open');
});

afterAll(async () => {
  await instance.dispose();
  await one.stop();
});

const allProblems = (vars: Vars): readonly Shown[] => [
  ...vars.configProblems,
  ...vars.sourceProblems,
  ...vars.lastRenderFailure,
  ...(vars.render?.problems ?? []),
];

/** What the one clear error has to say. */
interface Told {
  readonly reason: string;
  /** `Kind namespace/name`. */
  readonly object?: string;
  readonly field?: string;
  /** File, with the line where it is known. */
  readonly place?: string;
  readonly message: RegExp;
}

/** Writes a bad file, checks what is told in `/debug/vars` and in the log, and takes the file away again. */
const tells = async (content: string | readonly object[], told: Told): Promise<void> => {
  onTestFailed(() => instance.showLog());
  instance.forgetOutput();
  instance.write('bad.yaml', content);
  try {
    const problem = await instance.until(told.reason, async () =>
      allProblems(await instance.vars()).find(({ reason }) => reason === told.reason),
    );
    expect(problem.message).toMatch(told.message);
    expect(problem.nextStep).toMatch(/^\S.{8,}\.$/);
    expect(nameOf(problem)).toBe(told.object);
    expect(problem.field).toBe(told.field);
    if (told.place !== undefined) expect(placeOf(problem)).toContain(told.place);
    const line = await instance.line(new RegExp(`${told.reason}: `));
    for (const part of [told.object, told.field, problem.message, problem.nextStep]) {
      expect(line).toContain(part ?? '');
    }
    expect(instance.messages().filter((other) => other === line)).toHaveLength(1);
  } finally {
    instance.remove('bad.yaml');
  }
  await instance.until('the problem to go', async () => {
    return !allProblems(await instance.vars()).some(({ reason }) => reason === told.reason);
  });
};

const nameOf = ({ object }: Shown): string | undefined =>
  object && `${object.kind} ${object.namespace}/${object.name}`;

const placeOf = ({ place }: Shown): string =>
  place === undefined ? '' : `${place.source}:${String(place.line ?? '')}`;

describe('files', () => {
  it('a broken file is told with its place', async () => {
    await tells('apiVersion: v1\nkind: [Service\nmetadata: {}\n', {
      reason: 'InvalidYAML',
      place: 'bad.yaml:3',
      message: /not valid YAML/,
    });
  });

  it('a file that breaks keeps its last good content', async () => {
    const rule = [ingress('more', { rules: [['more.example.com', '/', 'shop:80']] })];
    instance.write('more.yaml', rule);
    await instance.serves('more.example.com', '/', '"one"');
    instance.write('more.yaml', '{ broken');
    await instance.until('the problem', async () => {
      return allProblems(await instance.vars()).some(({ reason }) => reason === 'InvalidYAML');
    });
    await instance.serves('more.example.com', '/', '"one"');
    instance.write('more.yaml', rule);
    await instance.until('no problem', async () => {
      return allProblems(await instance.vars()).length === 0;
    });
    instance.remove('more.yaml');
    await instance.serves('more.example.com', '/', 404);
  });

  it('a kind that nobody watches is told', async () => {
    await tells([{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } }], {
      reason: 'KindNotWatched',
      object: 'Deployment default/web',
      place: 'bad.yaml:1',
      message: /Deployment/,
    });
  });
});

describe('references', () => {
  const secure = (secret: string) =>
    ingress('bad', {
      rules: [['bad.example.com', '/', 'shop:80']],
      tls: [[secret, 'bad.example.com']],
    });

  it('R18: an Ingress with a missing Service is told and answers 503', async () => {
    const check = tells([ingress('bad', { rules: [['bad.example.com', '/', 'nothing:80']] })], {
      reason: 'ServiceNotFound',
      object: 'Ingress default/bad',
      field: 'spec.rules[0].http.paths[0].backend.service.name',
      message: /Service default\/nothing does not exist/,
    });
    await instance.serves('bad.example.com', '/', 503);
    await check;
  });

  it('a Secret with half a key pair is told', async () => {
    const { certificate } = await makeKeyPair(['bad.example.com']);
    await tells([secure('half'), tlsSecret('half', { 'tls.crt': certificate })], {
      reason: 'IncompleteKeyPair',
      object: 'Ingress default/bad',
      field: 'spec.tls[0].secretName',
      message: /Secret default\/half has no .*tls\.key/,
    });
  });

  it('a key that does not match its certificate is told, and shown to nobody', async () => {
    const { certificate } = await makeKeyPair(['bad.example.com']);
    const { key } = await makeKeyPair(['other.example.com']);
    await tells([secure('mixed'), tlsSecret('mixed', { 'tls.crt': certificate, 'tls.key': key })], {
      reason: 'InvalidKeyPair',
      object: 'Ingress default/bad',
      field: 'spec.tls[0].secretName',
      message: /Secret default\/mixed/,
    });
    expect(instance.out).not.toContain(key.split('\n')[1] ?? '');
  });
});

const HOSTILE: readonly (readonly [what: string, text: string])[] = [
  ['a newline', 'a\n    stats enable'],
  ['double quotes', 'a"b'],
  ['single quotes', "a'b"],
  ['an expression', '%[env(HOME)]'],
  ['dots', '../../etc/passwd'],
  ['10 kB', 'x'.repeat(10_000)],
  ['__proto__', '__proto__'],
];

/** Nothing hostile is in any file that HAProxy reads. */
const expectClean = (): void => {
  const base = join(instance.stateDir, 'haproxy');
  const files = readdirSync(base, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile() && !file.parentPath.includes('/.'))
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'));
  expect(texts.length).toBeGreaterThan(5);
  const all = texts.join('\n');
  for (const [, text] of HOSTILE) expect(all).not.toContain(text);
};

describe('R8: hostile strings', () => {
  it.each(HOSTILE)('a host with %s is told and left out', async (_what, text) => {
    await tells([ingress('bad', { rules: [[text, '/', 'shop:80']] })], {
      reason: 'InvalidHost',
      object: 'Ingress default/bad',
      field: 'spec.rules[0].host',
      message: /is not a DNS name/,
    });
    expectClean();
  });

  it.each(HOSTILE.filter(([, text]) => text !== '__proto__'))(
    'a path with %s is told and left out',
    async (_what, text) => {
      await tells([ingress('bad', { rules: [['bad.example.com', `/${text}`, 'shop:80']] })], {
        reason: 'InvalidPath',
        object: 'Ingress default/bad',
        field: 'spec.rules[0].http.paths[0].path',
        message: /^The path "\//,
      });
      expectClean();
    },
  );

  it.each(HOSTILE)('a Service name with %s is told and answers 503', async (_what, text) => {
    const rule = ingress('bad');
    const path = {
      path: '/',
      pathType: 'Prefix',
      backend: { service: { name: text, port: { number: 80 } } },
    };
    const spec = {
      ...(rule['spec'] as object),
      rules: [{ host: 'bad.example.com', http: { paths: [path] } }],
    };
    await tells([{ ...rule, spec }], {
      reason: 'InvalidServiceName',
      object: 'Ingress default/bad',
      field: 'spec.rules[0].http.paths[0].backend.service.name',
      message: /^No Service can be called/,
    });
    expectClean();
  });

  it.each(HOSTILE)('an object named with %s is told with its file', async (_what, text) => {
    await tells([ingress(text, { rules: [['bad.example.com', '/', 'shop:80']] })], {
      reason: 'InvalidObject',
      field: 'metadata.name',
      place: 'bad.yaml:1',
      message: /metadata\.name/,
    });
    expectClean();
  });

  it('annotations, labels and unknown members may say anything', async () => {
    const words = Object.fromEntries(
      HOSTILE.map(([, text], at) => [`example.com/${String(at)}`, text]),
    );
    const rule = ingress('fine', {
      rules: [['fine.example.com', '/', 'shop:80']],
      annotations: words,
    });
    const text = JSON.stringify(rule).replace(
      '"spec":{',
      '"__proto__":{"kind":"x"},"constructor":{"prototype":1},"spec":{"__proto__":{"rules":[]},',
    );
    instance.write('fine.yaml', text);
    await instance.serves('fine.example.com', '/', '"one"');
    expect(allProblems(await instance.vars())).toStrictEqual([]);
    expectClean();
    instance.remove('fine.yaml');
    await instance.serves('fine.example.com', '/', 404);
  });

  it('names that JavaScript knows are names like others', async () => {
    const [, ...slices] = serviceOn('constructor', [one.port]);
    instance.write('fine.yaml', [
      service('constructor'),
      ...slices,
      ingress('constructor', { rules: [['constructor', '/__proto__', 'constructor:80']] }),
    ]);
    await instance.serves('constructor', '/__proto__/x', '"one"');
    expect((await instance.get('constructor', '/')).status).toBe(404);
    instance.remove('fine.yaml');
    await instance.serves('constructor', '/__proto__/x', 404);
  });
});

describe('G13: configurations', () => {
  /** The configuration of the instance lies in another file, so this one takes its place for a while. */
  const refused = async (spec: Readonly<Record<string, unknown>>, told: Omit<Told, 'reason'>) => {
    onTestFailed(() => instance.showLog());
    const good = readFileSync(join(instance.manifests, 'config.yaml'), 'utf8');
    instance.forgetOutput();
    instance.write('config.yaml', [configured(spec)]);
    try {
      const [problem] = await instance.until('the refusal', async () => {
        const { configProblems } = await instance.vars();
        return configProblems.length > 0 && configProblems;
      });
      expect(problem?.message).toMatch(told.message);
      expect(problem?.nextStep).toMatch(/^\S.{8,}\.$/);
      expect(problem?.field).toBe(told.field);
      expect(problem && placeOf(problem)).toContain(told.place ?? '');
      if (told.object !== undefined) expect(problem && nameOf(problem)).toBe(told.object);
      expect(await instance.line(/^configuration refused/)).toContain('stays in force');
      await instance.line(new RegExp(`: ${problem?.reason ?? ''}: `));
    } finally {
      instance.write('config.yaml', good);
    }
    await instance.until('it to be good again', async () => {
      return (await instance.vars()).configProblems.length === 0;
    });
  };

  it('an unknown field is told with the nearest known one', async () => {
    await refused(
      { dataplane: { minDeploymentIntervall: '1s' } },
      {
        object: 'HAProxyTemplateConfig default/haptic',
        field: 'spec.dataplane.minDeploymentIntervall',
        message: /minDeploymentInterval\b/,
      },
    );
  });

  it('a template with a syntax error is told with object, template and line', async () => {
    await refused(
      { templateSnippets: { 'request-600-x': { template: '# one\n{% if %}\n' } } },
      {
        place: 'HAProxyTemplateConfig default/haptic: templateSnippets.request-600-x.template:2',
        message: /^syntax error: unexpected token: %}/,
      },
    );
  });

  it('a name that does not exist is told when it is loaded', async () => {
    await refused(
      { templateSnippets: { 'request-600-x': { template: '# {{ extraContex.maxconn }}\n' } } },
      {
        place: 'HAProxyTemplateConfig default/haptic: templateSnippets.request-600-x.template:1',
        message: /extraContex.*did you mean "extraContext"/,
      },
    );
  });
});
