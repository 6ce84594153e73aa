/** Matching that takes linear time whatever the pattern. */
import { RE2JS } from 're2js';
import { TemplateFailure } from './failure.ts';

const KEPT = 256;
const compiled = new Map<string, RE2JS>();

/** A regular expression in RE2 syntax; compiled ones are kept. */
export const linearRegex = (pattern: string): RE2JS => {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  try {
    const regex = RE2JS.compile(pattern);
    if (compiled.size >= KEPT) compiled.clear();
    compiled.set(pattern, regex);
    return regex;
  } catch {
    throw new TemplateFailure('the pattern is not a regular expression in RE2 syntax', {
      nextStep: 'Look-around and back-references do not exist there.',
    });
  }
};

/** `*` stands for any characters, `?` for one, everything else for itself. */
export const globMatches = (pattern: string, text: string): boolean => {
  let [at, position, star, resume] = [0, 0, -1, 0];
  while (position < text.length) {
    if (pattern[at] === '*') {
      [star, resume] = [at, position];
      at += 1;
    } else if (pattern[at] === '?' || (at < pattern.length && pattern[at] === text[position])) {
      at += 1;
      position += 1;
    } else if (star !== -1) {
      resume += 1;
      [at, position] = [star + 1, resume];
    } else return false;
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
};
