import { describe, expect, it } from 'vitest';
import { type EchoBackend, startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress, type RuleWords } from '../../support/objects.ts';
import { configured, Instance, serviceOn } from './instance.ts';
import { type Load, startLoad } from './load.ts';

const HOST = 'shop.example.com';

interface Bed {
  readonly instance: Instance;
  readonly load: Load;
  readonly stop: () => Promise<void>;
}

/** An instance under load, with two backends for Service `shop` of which one is in its slices, and one for `cart`. */
const underLoad = async (binary: string, backends: readonly EchoBackend[]): Promise<Bed> => {
  const [first, second] = backends.map(({ port }) => port);
  const instance = await Instance.start({
    haproxy: binary,
    manifests: {
      'config.yaml': [configured({ dataplane: { minDeploymentInterval: '500ms' } })],
      'shop.yaml': serviceOn('shop', [first ?? 0]),
      'cart.yaml': serviceOn('cart', [second ?? 0]),
      'ingress.yaml': rules([HOST, '/', 'shop:80']),
    },
  });
  const load = startLoad({ port: instance.ports.http, host: HOST });
  await instance.until('traffic', () => (load.answers.get('one') ?? 0) > 20);
  return { instance, load, stop: load.stop };
};

const rules = (...all: readonly RuleWords[]) => [ingress('shop', { rules: all })];

/** Waits until so many more requests were answered by a backend. */
const more = async ({ instance, load }: Bed, name: string, count = 20): Promise<void> => {
  const before = load.answers.get(name) ?? 0;
  await instance.until(`${name} to answer`, () => (load.answers.get(name) ?? 0) >= before + count);
};

/** Waits until a backend gets no more requests while the other one does. */
const settled = async (bed: Bed, name: string): Promise<void> => {
  const { answers } = bed.load;
  await bed.instance.until(`${name} to be left alone`, async () => {
    const before = answers.get(name);
    await more(bed, 'two');
    return answers.get(name) === before;
  });
};

describe.each(haproxyVersions())(
  'under constant load on HAProxy $version',
  ({ binary, version }) => {
    it('R3, R4, S90: endpoints come, go and move with 0 errors and 0 reloads', async () => {
      const backends = [await startEcho('one'), await startEcho('two')];
      const [one, two] = backends;
      if (one === undefined || two === undefined) throw new Error('there are two');
      const bed = await underLoad(binary, backends);
      const { instance, load } = bed;
      const reloads = await instance.reloads();

      instance.write('shop.yaml', serviceOn('shop', [one.port, two.port]));
      await more(bed, 'two');
      instance.write('shop.yaml', serviceOn('shop', [two.port]));
      await more(bed, 'two');
      await settled(bed, 'one');
      instance.write('shop.yaml', serviceOn('shop', [one.port]));
      await more(bed, 'one');

      await bed.stop();
      expect(load.errors).toStrictEqual([]);
      expect(await instance.reloads()).toBe(reloads);
      expect(await instance.metric('haptic_deployments_total', { outcome: 'runtime' })).toBe(3);
      await Promise.all(backends.map(({ stop }) => stop()));
    });

    it('R4, T1: a path on a known backend needs no reload; a new backend one before 3.4, and no error', async () => {
      const backends = [await startEcho('one'), await startEcho('two')];
      const bed = await underLoad(binary, backends);
      const { instance, load } = bed;
      const reloads = await instance.reloads();

      instance.write(
        'ingress.yaml',
        rules([HOST, '/', 'shop:80'], ['new.example.com', '/a', 'shop:80']),
      );
      await instance.serves('new.example.com', '/a/b', '"one"');
      expect((await instance.get('new.example.com', '/b')).status).toBe(404);
      expect(await instance.reloads()).toBe(reloads);

      instance.write('cart-ingress.yaml', [
        ingress('cart', { rules: [['cart.example.com', '/', 'cart:80']] }),
      ]);
      await instance.serves('cart.example.com', '/', '"two"');
      await more(bed, 'one');
      await instance.until('the change to be counted', async () => {
        const runtime = await instance.metric('haptic_deployments_total', { outcome: 'runtime' });
        return (await instance.reloads()) + runtime === reloads + 2;
      });
      expect(await instance.reloads()).toBe(reloads + Number(version !== '3.4'));

      await bed.stop();
      expect(load.errors).toStrictEqual([]);
      await Promise.all(backends.map(({ stop }) => stop()));
    });
  },
);
