/**
 * The certificates of the control plane and of the nodes, and the kubeconfig files made of them.
 */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import {
  API_SERVER,
  CONTROL_PLANE_ADDRESS,
  KUBERNETES_SERVICE_ADDRESS,
  NODES,
  nodeAddress,
} from './places.ts';

/** Whom a certificate is for. */
interface Identity {
  /** Name of its files. */
  readonly file: string;
  /** Kubernetes reads it as the name of the user. */
  readonly commonName: string;
  /** Kubernetes reads it as the group. Default: none. */
  readonly organization?: string;
  /** Default: none. */
  readonly dnsNames?: readonly string[];
  /** Default: none. */
  readonly addresses?: readonly string[];
  /** Whether it gets a kubeconfig file too. Default: false. */
  readonly kubeconfig?: boolean;
}

interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

const ADMINISTRATORS = 'system:masters';
const VALID_MS = 365 * 24 * 60 * 60 * 1000;

const IDENTITIES: readonly Identity[] = [
  {
    file: 'apiserver',
    commonName: 'kube-apiserver',
    dnsNames: ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'localhost'],
    addresses: ['127.0.0.1', CONTROL_PLANE_ADDRESS, KUBERNETES_SERVICE_ADDRESS],
  },
  { file: 'admin', commonName: 'admin', organization: ADMINISTRATORS, kubeconfig: true },
  { file: 'kubelet-client', commonName: 'kube-apiserver', organization: ADMINISTRATORS },
  {
    file: 'controller-manager',
    commonName: 'system:kube-controller-manager',
    kubeconfig: true,
  },
  { file: 'scheduler', commonName: 'system:kube-scheduler', kubeconfig: true },
  { file: 'proxy', commonName: 'system:kube-proxy', kubeconfig: true },
  ...NODES.map((name, n) => ({
    file: name,
    commonName: `system:node:${name}`,
    organization: 'system:nodes',
    dnsNames: [name],
    addresses: [nodeAddress(n)],
    kubeconfig: true,
  })),
];

/** @returns path of a certificate (`NAME.crt`), a key (`NAME.key`) or a kubeconfig file */
export function credential(state: string, file: string): string {
  return join(state, 'pki', file);
}

/** @returns path of the administrator's kubeconfig file */
export function adminKubeconfig(state: string): string {
  return credential(state, 'admin.kubeconfig');
}

/** Makes an authority and everything it signs below `state`, unless it is there. */
export async function makeCertificates(state: string): Promise<void> {
  if (existsSync(adminKubeconfig(state))) return;
  mkdirSync(join(state, 'pki'), { recursive: true, mode: 0o700 });
  const write = (file: string, text: string): void => {
    writeFileSync(credential(state, file), text, { mode: 0o600 });
  };
  const authority = await makeAuthority();
  write('ca.crt', authority.certificate);
  write('ca.key', authority.key);
  const signer = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  write('service-accounts.key', signer.privateKey);
  write('service-accounts.pub', signer.publicKey);
  // The administrator's comes last, since it says that all are there.
  for (const identity of [...IDENTITIES].sort((a) => (a.file === 'admin' ? 1 : -1))) {
    const pair = await sign(authority, identity);
    write(`${identity.file}.crt`, pair.certificate);
    write(`${identity.file}.key`, pair.key);
    if (identity.kubeconfig === true) {
      write(`${identity.file}.kubeconfig`, kubeconfigOf(state, pair));
    }
  }
}

async function makeAuthority(): Promise<KeyPair> {
  const pems = await generate([{ name: 'commonName', value: 'haptic-test-cluster' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notAfterDate: new Date(Date.now() + VALID_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { certificate: pems.cert, key: pems.private };
}

async function sign(authority: KeyPair, identity: Identity): Promise<KeyPair> {
  const { commonName, organization, dnsNames = [], addresses = [] } = identity;
  const subject = [{ name: 'commonName', value: commonName }];
  if (organization !== undefined) subject.push({ name: 'organizationName', value: organization });
  const altNames = [
    ...dnsNames.map((value) => ({ type: 2 as const, value })),
    ...addresses.map((ip) => ({ type: 7 as const, ip })),
  ];
  const pems = await generate(subject, {
    keyType: 'ec',
    algorithm: 'sha256',
    notAfterDate: new Date(Date.now() + VALID_MS),
    ca: { key: authority.key, cert: authority.certificate },
    extensions: [
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      ...(altNames.length === 0 ? [] : [{ name: 'subjectAltName' as const, altNames }]),
    ],
  });
  return { certificate: pems.cert, key: pems.private };
}

/** JSON is YAML; the certificates are in it, so that the file can be used anywhere. */
function kubeconfigOf(state: string, pair: KeyPair): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const authority = readFileSync(credential(state, 'ca.crt'), 'utf8');
  const name = 'haptic-test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name, cluster: { server: API_SERVER, 'certificate-authority-data': base64(authority) } },
    ],
    users: [
      {
        name,
        user: {
          'client-certificate-data': base64(pair.certificate),
          'client-key-data': base64(pair.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}
