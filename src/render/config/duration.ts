const UNITS_IN_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Longest duration that timers can wait, in milliseconds: about 24 days. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Milliseconds of a duration in Go's notation (`100ms`, `1m30s`, `1.5h`, `0`), rounded up to a whole one; undefined for
 * anything else, for negative ones and for ones longer than about 24 days.
 */
export const parseDuration = (text: string): number | undefined => {
  if (text === '0') return 0;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  const parts = text.matchAll(/([\d.]+)([a-zµ]+)/g);
  const ms = [...parts].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (UNITS_IN_MS[unit ?? ''] ?? NaN),
    0,
  );
  // Fractions such as 1.1s must not become a millisecond longer by the way numbers are stored.
  return ms <= MAX_MS ? Math.max(0, Math.ceil(ms - 1e-6)) : undefined;
};
