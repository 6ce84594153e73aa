import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import { yamlDocuments } from '../../src/streams/yaml-documents.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

/** Names of the example folders. */
export const exampleNames = (): string[] =>
  readdirSync(EXAMPLES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();

/** The configuration that an example brings along, if it does. */
export const exampleConfig = (name: string): KubeObject | undefined =>
  exampleObjects(name).find(({ kind }) => kind === 'HAProxyTemplateConfig');

/**
 * All objects of one example.
 *
 * @throws when one of its files is no YAML
 */
export const exampleObjects = (name: string): KubeObject[] => {
  const folder = join(EXAMPLES, name);
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.sort().flatMap((file) => {
    const read = yamlDocuments(readFileSync(join(folder, file), 'utf8'));
    if (!read.ok) throw new Error(`${name}/${file}: ${read.error.reason}`);
    return read.documents as KubeObject[];
  });
};
