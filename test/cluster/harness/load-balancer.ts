/**
 * Gives Services of type LoadBalancer their addresses, as a cloud would: `load-balancer.ts KUBECONFIG PREFIX`.
 * kube-proxy does the rest. An address that a Service asks for (`spec.loadBalancerIP`) is granted when it
 * is one of ours and free, and otherwise never.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { assignAddresses, type Service } from './load-balancer-addresses.ts';

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }];
  readonly users: readonly [{ readonly user: Readonly<Record<string, string>> }];
}

const POLL_MS = 250;

const [file = '', prefix = ''] = process.argv.slice(2);
const { clusters, users } = JSON.parse(readFileSync(file, 'utf8')) as Kubeconfig;
const pem = (text = ''): Buffer => Buffer.from(text, 'base64');
const dispatcher = new Agent({
  connect: {
    ca: pem(clusters[0].cluster['certificate-authority-data']),
    cert: pem(users[0].user['client-certificate-data']),
    key: pem(users[0].user['client-key-data']),
  },
});
const server = clusters[0].cluster['server'] ?? '';

async function call(method: 'GET' | 'PATCH', path: string, body?: object): Promise<unknown> {
  const response = await request(`${server}${path}`, {
    method,
    dispatcher,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${text}`);
  return JSON.parse(text);
}

for (;;) {
  try {
    const list = (await call('GET', '/api/v1/services?resourceVersion=0')) as { items: Service[] };
    for (const { namespace, name, address } of assignAddresses(list.items, prefix)) {
      const status = { loadBalancer: { ingress: [{ ip: address }] } };
      await call('PATCH', `/api/v1/namespaces/${namespace}/services/${name}/status`, { status });
      console.log(`${namespace}/${name}: ${address}`);
    }
  } catch (error: unknown) {
    console.log(String(error));
  }
  await sleep(POLL_MS);
}
