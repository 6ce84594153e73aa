import { hash } from 'node:crypto';
import type { DigestFunction } from './plan/plan.ts';

/** Hex SHA-256 of UTF-8 text (D10); passed into everything that must also run without Node. */
export const sha256: DigestFunction = (text) => hash('sha256', text, 'hex');
