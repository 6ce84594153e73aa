/** Why somebody is refused; a closed set, for the metric. */
export const REFUSAL_REASONS = [
  'no-certificate',
  'certificate',
  'expired',
  'name',
  'tls-version',
  'not-tls',
  'refused-by-client',
  'handshake',
  'token',
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];
