import { hasContent, unreadableReason } from '../snapshot/content.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { Complaint } from './complaint.ts';
import { at, textAt } from './fields.ts';
import type { InspectKeyPair } from './model.ts';

/** A key pair fit to be served, or what is wrong with its Secret. Never holds a Secret's values in a complaint. */
export type KeyPair =
  | { readonly ok: true; readonly pem: string; readonly names: readonly string[] }
  | { readonly ok: false; readonly complaint: Complaint };

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const KEYS = /-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----[^-]+-----END \1-----/g;
const TYPE = 'kubernetes.io/tls';

/** Decodes what the API server keeps in `data`; manifests may hold `stringData`, which wins as it does there. */
const secretText = (secret: KubeObject, key: string): string | undefined => {
  const plain = textAt(secret, 'stringData', key);
  if (plain !== undefined) return plain;
  const encoded = textAt(secret, 'data', key);
  if (encoded === undefined) return undefined;
  try {
    return atob(encoded);
  } catch {
    return undefined; // not base64: as good as absent, and nothing of it may be shown
  }
};

/** The blocks alone, without blank lines, which would end a payload on HAProxy's command line. */
const blocks = (text: string | undefined, pattern: RegExp): readonly string[] =>
  [...(text ?? '').matchAll(pattern)].map(([block]) =>
    block
      .split(/[\r\n]+/)
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join('\n'),
  );

const refuse = (reason: string, message: string, nextStep: string): KeyPair => ({
  ok: false,
  complaint: {
    reason,
    field: 'secretName',
    message: `${message}; the default certificate is served.`,
    nextStep,
  },
});

const refuseType = (called: string, secret: KubeObject): KeyPair | undefined => {
  const type = at(secret, 'type') ?? TYPE;
  return type === TYPE || type === 'Opaque'
    ? undefined
    : refuse(
        'InvalidSecretType',
        `${called} is not of type ${TYPE}`,
        `Create it with type ${TYPE}, for example with kubectl create secret tls.`,
      );
};

/**
 * Reads certificate chain and key of a Secret of type `kubernetes.io/tls`.
 *
 * @param called the Secret in messages: `Secret shop/web`
 */
export const readKeyPair = (
  called: string,
  secret: KubeObject | undefined,
  inspect: InspectKeyPair,
): KeyPair => {
  if (secret === undefined) {
    return refuse('SecretNotFound', `${called} does not exist`, 'Create it, or correct its name.');
  }
  if (!hasContent(secret)) {
    const reason = unreadableReason(secret) ?? 'it is not there yet';
    return refuse(
      'SecretUnreadable',
      `${called} cannot be read: ${reason}`,
      'Let the controller get Secrets; it is tried again by itself.',
    );
  }
  const wrongType = refuseType(called, secret);
  if (wrongType !== undefined) return wrongType;
  const chain = blocks(secretText(secret, 'tls.crt'), CERTIFICATES);
  const keys = blocks(secretText(secret, 'tls.key'), KEYS);
  const [key] = keys;
  if (chain.length === 0 || key === undefined) {
    const half =
      chain.length === 0 ? 'no PEM certificate in tls.crt' : 'no PEM private key in tls.key';
    return refuse('IncompleteKeyPair', `${called} has ${half}`, 'Put both halves into the Secret.');
  }
  const report = inspect(chain.join('\n'), key);
  if (!report.ok) {
    return refuse(
      'InvalidKeyPair',
      `${called} cannot be used: ${report.message}`,
      'Put a certificate and the key that belongs to it into the Secret.',
    );
  }
  return { ok: true, pem: `${[...chain, key].join('\n')}\n`, names: report.names };
};

/** Remembers what was read of a Secret as long as the object lives: inspecting a key pair is costly. */
export const keyPairReader = (
  inspect: InspectKeyPair,
): ((called: string, secret: KubeObject | undefined) => KeyPair) => {
  const known = new WeakMap<KubeObject, KeyPair>();
  return (called, secret) => {
    const found = secret === undefined ? undefined : known.get(secret);
    if (found !== undefined) return found;
    const pair = readKeyPair(called, secret, inspect);
    if (secret !== undefined) known.set(secret, pair);
    return pair;
  };
};
