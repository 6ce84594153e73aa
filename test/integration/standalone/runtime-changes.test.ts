/** What a whole Ingress with TLS costs in its life: no reload on 3.4, and certificates none on any version. */
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { Authority } from '../../support/authority.ts';
import { startEcho } from '../../support/echo.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { ingress, tlsSecret } from '../../support/objects.ts';
import { configured, Instance, serviceOn } from './instance.ts';

const HOST = 'shop.example.com';
const SECOND = 'second.example.com';

const secret = ({ certificate, key }: TestKeyPair) => [
  tlsSecret('pair', { 'tls.crt': certificate, 'tls.key': key }),
];
const fingerprint = (pair: TestKeyPair): string =>
  new X509Certificate(pair.certificate).fingerprint256;

/** Fingerprint of the certificate that a client of this name gets. */
const served = (port: number, servername: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, servername, rejectUnauthorized: false };
    const socket = connect(options, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });

describe.each(haproxyVersions())(
  'an Ingress with TLS on HAProxy $version',
  ({ binary, version }) => {
    it('S90, R23: comes, gets another certificate and another host, and goes', async () => {
      const root = await Authority.root('root');
      const [first, renewed] = [
        await root.issue({ names: [HOST, SECOND] }),
        await root.issue({ names: [HOST, SECOND] }),
      ];
      const echo = await startEcho('one');
      const instance = await Instance.start({
        haproxy: binary,
        manifests: {
          'config.yaml': [configured({ dataplane: { minDeploymentInterval: '300ms' } })],
          'shop.yaml': serviceOn('shop', [echo.port]),
          'pair.yaml': secret(first),
        },
      });
      const { https } = instance.ports;
      const nobody = await served(https, 'nobody.example.com');
      const until = (what: string, host: string, wanted: string): Promise<unknown> =>
        instance.until(what, async () => (await served(https, host)) === wanted);
      const shop = (hosts: readonly string[]) => [
        ingress('shop', {
          rules: hosts.map((host) => [host, '/', 'shop:80'] as const),
          tls: [['pair', ...hosts]],
        }),
      ];
      const before = await instance.reloads();

      instance.write('ingress.yaml', shop([HOST]));
      await until('the certificate', HOST, fingerprint(first));
      await instance.until('the answer', async () => (await instance.get(HOST)).status < 400);
      const withBackend = before + Number(version !== '3.4');
      await instance.until(
        'the new backend',
        async () => (await instance.reloads()) === withBackend,
      );

      instance.write('pair.yaml', secret(renewed));
      await until('the renewed certificate', HOST, fingerprint(renewed));
      instance.write('ingress.yaml', shop([HOST, SECOND]));
      await until('the second name', SECOND, fingerprint(renewed));
      instance.write('ingress.yaml', shop([SECOND]));
      await until('the first name to be nobody', HOST, nobody);
      expect(await served(https, SECOND)).toBe(fingerprint(renewed));
      expect(await instance.reloads()).toBe(withBackend);

      instance.remove('ingress.yaml');
      await until('the second name to be nobody', SECOND, nobody);
      await instance.until('nothing to be routed', async () => {
        return (await instance.get(SECOND)).status === 404;
      });
      const without = withBackend + Number(version !== '3.4');
      await instance.until('the backend to go', async () => (await instance.reloads()) === without);
      await echo.stop();
    });
  },
);
