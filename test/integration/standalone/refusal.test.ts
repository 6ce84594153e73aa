import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress } from '../../support/objects.ts';
import { configured, Instance, serviceOn } from './instance.ts';
import { startLoad } from './load.ts';

const HOST = 'shop.example.com';
const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);

/**
 * Addresses out of ConfigMaps that every backend of a route denies. HAProxy reads such a file when it starts, so a new
 * content is only written: no running worker minds what is in it, the checker does.
 */
const DENYING = configured({
  dataplane: { minDeploymentInterval: '500ms' },
  watchedResources: {
    blocklists: {
      apiVersions: ['v1'],
      resources: 'configmaps',
      indexBy: ['metadata.namespace', 'metadata.name'],
    },
  },
  files: {
    'denied.lst': {
      template:
        '{% for list in resources.blocklists.list() %}{{ list.data.address | token }}\n{% endfor %}',
      reloadOnPush: false,
    },
  },
  templateSnippets: {
    'backend-600-denied': {
      template: '    http-request deny if { src -f {{ path("denied.lst", "file") }} }\n',
    },
  },
});

const blocklist = (address: string) => [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'denied' },
    data: { address },
  },
];

describe.each(haproxyVersions())('a refused render on HAProxy $version', ({ binary }) => {
  it('S14, S15, S46: is taken back and explained, and what corrects it is let out', async () => {
    const [one, two] = [await startEcho('one'), await startEcho('two')];
    const instance = await Instance.start({
      haproxy: binary,
      manifests: {
        'config.yaml': [DENYING],
        'denied.yaml': blocklist('192.0.2.1'),
        'shop.yaml': serviceOn('shop', [one.port]),
        'ingress.yaml': [ingress('shop', { rules: [[HOST, '/', 'shop:80']] })],
      },
    });
    await instance.line(/^checked .*: passed/);
    const good = (await instance.vars()).render?.planId ?? '';
    const onDisk = () =>
      readFileSync(join(instance.stateDir, 'haproxy/general/denied.lst'), 'utf8');
    const load = startLoad({ port: instance.ports.http, host: HOST });
    const reloads = await instance.reloads();

    instance.write('denied.yaml', blocklist('not-an-address'));
    await instance.line(/^checked .*: refused in .* ms$/);
    const refused = await instance.line(/RefusedByHAProxy/);
    expect(refused).toMatch(/haproxy\.cfg line \d+/);
    expect(refused).toMatch(/'not-an-address' is not a valid IPv4 or IPv6 address/);
    // The template and the object that printed the line.
    expect(refused).toMatch(
      /backend-600-denied.*:1: Service default\/shop: RefusedByHAProxy: .*Change Service default\/shop, or line 1 of template .*backend-600-denied/,
    );
    await instance.line(new RegExp(`^reverting pods on .* to ${good.slice(0, 10)}$`));
    await instance.until('the file to be back', () => onDisk() === '192.0.2.1\n');

    // The ConfigMap is served as it was accepted, so the gate opens again.
    await instance.until('quarantine', async () => (await instance.vars()).gate.phase === 'open');
    const { gate, render } = await instance.vars();
    expect(gate).toMatchObject({ accepted: good, lastVerdict: 'refused' });
    expect(gate.lastVerdictPlanId).not.toBe(good);
    expect(render?.problems).toMatchObject([
      { reason: 'Quarantined', object: { kind: 'ConfigMap', name: 'denied' } },
    ]);
    expect(render?.problems[0]?.message).toMatch(
      /^It is served as it was accepted last, .*'not-an-address'/,
    );
    expect(gate.lastMessage).toContain("'not-an-address' is not a valid IPv4 or IPv6 address");
    expect(gate.lastProblems).toMatchObject([
      {
        reason: 'RefusedByHAProxy',
        object: { kind: 'Service', namespace: 'default', name: 'shop' },
        place: {
          source: expect.stringContaining('backend-600-denied') as string,
          line: 1,
        },
      },
    ]);
    expect(await instance.metric('haptic_gate_state')).toBe(0);
    expect(await instance.metric('haptic_reverts_total')).toBe(1);
    expect(await instance.metric('haptic_quarantined_objects', { instead: 'accepted' })).toBe(1);

    // Everything else goes on.
    instance.write('shop.yaml', serviceOn('shop', [two.port]));
    await instance.until('two', () => (load.answers.get('two') ?? 0) > 10);

    instance.write('denied.yaml', blocklist('192.0.2.2'));
    await instance.until('the new file', () => onDisk() === '192.0.2.2\n');
    await instance.line(/^fixed: .*ConfigMap default\/denied: Quarantined$/);
    expect((await instance.vars()).render?.problems).toStrictEqual([]);
    await load.stop();
    expect(load.errors).toStrictEqual([]);
    expect(await instance.reloads()).toBe(reloads);
    await Promise.all([one.stop(), two.stop()]);
  });
});

describe('a render that HAProxy does not start with', () => {
  it('R6, S21: is rejected by the pod, explained by the gate, and costs no request', async () => {
    const one = await startEcho('one');
    const rules = ingress('shop', { rules: [[HOST, '/', 'shop:80']] });
    const service = (timeout: string) => {
      const [shop, ...slices] = serviceOn('shop', [one.port]);
      const annotations = { 'example.com/timeout': timeout };
      return [{ ...shop, metadata: { ...shop?.metadata, annotations } }, ...slices];
    };
    const instance = await Instance.start({
      haproxy: newest,
      manifests: {
        'config.yaml': [
          configured({
            dataplane: { minDeploymentInterval: '20ms' },
            templateSnippets: {
              'backend-600-timeout': {
                template:
                  '    timeout server {{ resources.services.get(route.object.namespace, route.object.name).metadata.annotations["example.com/timeout"] | token }}\n',
              },
            },
          }),
        ],
        'shop.yaml': service('10s'),
        'ingress.yaml': [rules],
      },
    });
    await instance.line(/^checked .*: passed/);
    const load = startLoad({ port: instance.ports.http, host: HOST });
    instance.write('shop.yaml', service('soon'));
    const rejected = await instance.line(/^haproxy: (?:rejected|reload of \w+ failed): /);
    expect(rejected).toContain("unexpected character 's' in 'timeout server'");
    expect(await instance.line(/RefusedByHAProxy/)).toMatch(
      /backend-600-timeout.*:1: Service default\/shop: RefusedByHAProxy: .*'timeout server'/,
    );
    await instance.until('traffic', () => (load.answers.get('one') ?? 0) > 50);

    instance.write('shop.yaml', service('20s'));
    await instance.until('release', async () => (await instance.vars()).gate.phase === 'open');
    await instance.until('the new tree', () =>
      readFileSync(join(instance.stateDir, 'haproxy/haproxy.cfg'), 'utf8').includes('20s'),
    );
    await load.stop();
    expect(load.errors).toStrictEqual([]);
    await one.stop();
  });
});
