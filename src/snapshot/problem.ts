import type { ObjectRef } from './objects.ts';

/**
 * Something a person should know and mend: an unreadable file, a refused object, a template error. Values of
 * Secrets never appear in it.
 */
export interface Problem {
  readonly severity: 'error' | 'warning';
  /** Stable word for metrics and Events, for example `ServiceNotFound`, `InvalidYAML`, `HostPathConflict`. */
  readonly reason: string;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to do about it, in one sentence. */
  readonly nextStep: string;
  readonly object?: ObjectRef;
  /** Path of the field inside the object, for example `spec.rules[0].http.paths[1].path`. */
  readonly field?: string;
  /** Source text the problem lies in; line and column count from 1. */
  readonly place?: { readonly source: string; readonly line?: number; readonly column?: number };
}
