import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Library } from '../render/config/layers.ts';
import {
  flag,
  listOf,
  membersOf,
  text,
  wholeNumber,
  anything,
} from '../render/config/field-checks.ts';
import type { Problem } from '../snapshot/problem.ts';
import { yamlDocuments } from './yaml-documents.ts';

/** The libraries of a folder, or why they cannot be used. */
export type LoadedLibraries =
  | { readonly ok: true; readonly libraries: readonly Library[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const DESCRIPTION_FILE = 'library.yaml';

const description = membersOf({
  name: text,
  description: text,
  order: wholeNumber(0, 1_000_000),
  enabled: flag,
  requires: listOf(text),
  spec: anything,
});

/**
 * Reads every library below a folder: each folder with a `library.yaml`, with the texts of all its files except those
 * under `tests`. Fields of `spec` are checked later, by `parseConfig`.
 *
 * Rejects only when the folder itself cannot be read.
 *
 * @param directory the folder of libraries; in a bundle it lies elsewhere than in a checkout, so there is no default
 */
export const loadLibraries = async (directory: string): Promise<LoadedLibraries> => {
  const folders = await readdir(directory, { withFileTypes: true });
  const problems: Problem[] = [];
  const libraries: Library[] = [];
  for (const folder of folders.filter((entry) => entry.isDirectory()).map(({ name }) => name)) {
    const files = await readTexts(join(directory, folder));
    const yaml = files.get(DESCRIPTION_FILE);
    if (yaml === undefined) continue;
    const library = parseLibrary(folder, yaml, problems);
    if (library !== undefined) libraries.push({ ...library, files });
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, libraries };
};

const parseLibrary = (
  folder: string,
  yaml: string,
  problems: Problem[],
): Omit<Library, 'files'> | undefined => {
  const source = `libraries/${folder}/${DESCRIPTION_FILE}`;
  const report = (field: string, message: string, nextStep: string): void => {
    problems.push({
      severity: 'error',
      reason: 'InvalidLibrary',
      message: `${source}: ${field} ${message}.`,
      nextStep,
      field,
      place: { source },
    });
  };
  const read = yamlDocuments(yaml);
  if (!read.ok) {
    const { line, column, reason } = read.error;
    problems.push({
      severity: 'error',
      reason: 'InvalidYAML',
      message: `${source} is not valid YAML: ${reason}.`,
      nextStep: 'Correct the file.',
      place: { source, line, column },
    });
    return undefined;
  }
  const fields = description(read.documents[0] ?? {}, '', report);
  if (fields === undefined) return undefined;
  const { name, order } = fields;
  if (name !== folder) report('name', `must be ${folder}, as the folder is`, 'Correct the name.');
  if (order === undefined) report('order', 'is missing', 'Write a number, for example 500.');
  const defaults = { description: '', enabled: true, requires: [], spec: {} };
  return { ...defaults, ...fields, name: folder, order: order ?? 0 };
};

/** All texts of a library by their paths inside it, with `/` between folders. */
const readTexts = async (folder: string, under = ''): Promise<ReadonlyMap<string, string>> => {
  const texts = new Map<string, string>();
  for (const entry of await readdir(join(folder, under), { withFileTypes: true })) {
    const path = under === '' ? entry.name : `${under}/${entry.name}`;
    if (entry.isDirectory() && path !== 'tests') {
      for (const [inner, content] of await readTexts(folder, path)) texts.set(inner, content);
    } else if (entry.isFile()) texts.set(path, await readFile(join(folder, path), 'utf8'));
  }
  return texts;
};
