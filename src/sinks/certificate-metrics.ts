import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import { chunkText, type Chunk } from '../cells/chunk.ts';
import type { Status } from '../http/status.ts';

/** What the metrics of certificates are read from, whenever somebody scrapes. */
export interface CertificateSources {
  readonly status: () => Status;
  /** End of the certificate that the controller shows to its agents, in milliseconds since 1970. Absent without TLS. */
  readonly agentClientEnd?: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** A certificate that ends sooner than this is `expiring`, in milliseconds. */
const EXPIRING_MS = 14 * 24 * 3_600_000;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/;

/**
 * Registers when certificates end: the soonest end of all that are served, and how many of them are near theirs; never one
 * series for each certificate.
 */
export const certificateMetrics = (registry: Registry, sources: CertificateSources): void => {
  const { status, agentClientEnd, now } = sources;
  const endOf = endReader();
  const served = (): readonly number[] =>
    [...(status().render?.newest.files.values() ?? [])]
      .filter(({ kind }) => kind === 'cert')
      .map(({ text }) => endOf(text))
      .filter((end) => end !== undefined);
  new Gauge({
    name: 'haptic_certificate_expiry_timestamp_seconds',
    help: 'End of a certificate in seconds since 1970; of served ones the soonest.',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      this.reset();
      const [soonest] = served().toSorted((left, right) => left - right);
      const ends = { served: soonest, 'agent-client': agentClientEnd?.() };
      for (const [certificate, end] of Object.entries(ends)) {
        if (end !== undefined) this.set({ certificate }, Math.floor(end / 1_000));
      }
    },
  });
  new Gauge({
    name: 'haptic_served_certificates',
    help: 'Served certificates by how near their end is.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const counts = { valid: 0, expiring: 0, expired: 0 };
      for (const end of served()) counts[stateOf(end - now())] += 1;
      for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
    },
  });
};

const stateOf = (leftMs: number): 'valid' | 'expiring' | 'expired' => {
  if (leftMs <= 0) return 'expired';
  return leftMs < EXPIRING_MS ? 'expiring' : 'valid';
};

/** Reads the end of the first certificate of a file; a text is read once, because renders share it. */
const endReader = (): ((text: Chunk) => number | undefined) => {
  const known = new WeakMap<Chunk, { readonly end: number | undefined }>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before.end;
    const end = endIn(chunkText(text));
    known.set(text, { end });
    return end;
  };
};

const endIn = (text: string): number | undefined => {
  const [pem] = CERTIFICATE.exec(text) ?? [];
  if (pem === undefined) return undefined;
  try {
    return new X509Certificate(pem).validToDate.getTime();
  } catch {
    return undefined; // HAProxy's checker says what is wrong with it
  }
};
