import {
  LIMITS,
  PROTOCOL_VERSION,
  type FileKind,
  type Manifest,
  type ManifestFile,
} from '../../src/protocol/protocol.ts';
import { BadRequest } from '../failures.ts';
import { shape } from './json-shape.ts';
import { readOperation, type Instruction } from './instruction.ts';
import { isCanonicalPath, parentsOf } from '../files/paths.ts';

/** A manifest that has been looked at: paths are safe, and each operation is executable or says why not. */
export interface CheckedManifest extends Omit<Manifest, 'operations' | 'inPlaceOperations'> {
  /** Empty: not told. */
  readonly leader: string;
  readonly operations: readonly Instruction[];
  readonly inPlaceOperations: readonly Instruction[];
}

const FILE_KINDS: readonly FileKind[] = [
  'config',
  'map',
  'cert',
  'ca',
  'crl',
  'crt-list',
  'general',
];
const MODES = ['auto', 'reload', 'revert'] as const;

/**
 * Reads an untrusted manifest. Members it does not know are ignored, so newer controllers can add some.
 *
 * @throws BadRequest naming the first thing that is wrong
 */
export function parseManifest(bytes: Uint8Array): CheckedManifest {
  const json = shape.object(parseJson(bytes), 'manifest');
  if (json['protocol'] !== PROTOCOL_VERSION) {
    throw new BadRequest(`this agent speaks protocol ${PROTOCOL_VERSION} only`);
  }
  const files = shape.list(json['files'], 'files', LIMITS.files).map(readFile);
  checkPaths(files);
  const mode = shape.oneOf(json['mode'], 'mode', MODES);
  // A slip must not empty a pod: only a revert may come without files, and means the pod's own last known good ones.
  if (files.length === 0 && mode !== 'revert') throw new BadRequest('there are no files');
  const planLength = shape.count(json['planLength'], 'planLength');
  if (planLength > LIMITS.planBytes) throw new BadRequest('the plan is too large', 413);
  return {
    protocol: PROTOCOL_VERSION,
    planId: shape.digest(json['planId'], 'planId'),
    epoch: shape.count(json['epoch'], 'epoch'),
    sequence: shape.count(json['sequence'], 'sequence'),
    leader: shape.text(json['leader'] ?? '', 'leader').slice(0, 253),
    expected: readExpected(json['expected']),
    mode,
    reload: shape.flag(json['reload'], 'reload'),
    reasons: shape
      .list(json['reasons'], 'reasons', 32)
      .map((reason) => shape.text(reason, 'reason')),
    reloadNotBeforeMs: shape.count(json['reloadNotBeforeMs'], 'reloadNotBeforeMs'),
    reloadIntervalMs: shape.count(json['reloadIntervalMs'], 'reloadIntervalMs'),
    files,
    operations: readOperations(json['operations'], 'operations'),
    inPlaceOperations: readOperations(json['inPlaceOperations'], 'inPlaceOperations'),
    ...readRevert(json['refused'], json['validated']),
    planLength,
  };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error: unknown) {
    throw new BadRequest(
      `the manifest is not JSON: ${error instanceof Error ? error.message.slice(0, 60) : ''}`,
    );
  }
}

function readExpected(value: unknown): Manifest['expected'] {
  const json = shape.object(value, 'expected');
  const role = (name: string): { [key: string]: string | null } => {
    const id = json[name];
    if (id === undefined) return {};
    return { [name]: id === null ? null : shape.digest(id, `expected.${name}`) };
  };
  const count = shape.optional(json['workerOperations'], (operations) =>
    shape.count(operations, 'expected.workerOperations'),
  );
  return {
    ...role('applied'),
    ...role('running'),
    ...(count === undefined ? {} : { workerOperations: count }),
  };
}

function readRevert(refused: unknown, validated: unknown): Pick<Manifest, 'refused' | 'validated'> {
  return {
    ...(refused === undefined
      ? {}
      : {
          refused: shape
            .list(refused, 'refused', 1024)
            .map((planId) => shape.digest(planId, 'refused')),
        }),
    ...(validated === undefined ? {} : { validated: shape.digest(validated, 'validated') }),
  };
}

function readOperations(value: unknown, name: string): Instruction[] {
  return shape.list(value, name, LIMITS.operations).map((entry) => readOperation(entry, name));
}

function readFile(value: unknown): ManifestFile {
  const json = shape.object(value, 'file');
  const path = shape.text(json['path'], 'path');
  if (!isCanonicalPath(path)) {
    throw new BadRequest(`${JSON.stringify(path.slice(0, 300))} is not a path inside the base`);
  }
  const inline = shape.optional(json['inline'], (part) => readInline(part, path));
  const file = {
    path,
    kind: shape.oneOf(json['kind'], `kind of ${path}`, FILE_KINDS),
    digest: shape.digest(json['digest'], `digest of ${path}`),
    size: shape.count(json['size'], `size of ${path}`),
  };
  if (inline === undefined) return file;
  if (inline.base === undefined && inline.length !== file.size) {
    throw new BadRequest(`the inline bytes of ${path} are not its size`);
  }
  return { ...file, inline };
}

function readInline(value: unknown, path: string): NonNullable<ManifestFile['inline']> {
  const json = shape.object(value, `inline of ${path}`);
  const length = shape.count(json['length'], `inline length of ${path}`);
  if (json['base'] === undefined) return { length };
  return {
    length,
    base: shape.digest(json['base'], `base of ${path}`),
    offset: shape.optional(json['offset'], (n) => shape.count(n, `offset of ${path}`)) ?? 0,
    replaced: shape.optional(json['replaced'], (n) => shape.count(n, `replaced of ${path}`)) ?? 0,
  };
}

/** No path twice, and no path that needs another one to be a directory. */
function checkPaths(files: readonly ManifestFile[]): void {
  const paths = new Set<string>();
  let bytes = 0;
  for (const { path, inline } of files) {
    if (paths.has(path)) throw new BadRequest(`${path} is listed twice`);
    paths.add(path);
    bytes += inline?.length ?? 0;
  }
  if (bytes > LIMITS.bodyBytes) throw new BadRequest('the inline bytes are too many', 413);
  for (const { path } of files) {
    const parent = parentsOf(path).find((directory) => paths.has(directory));
    if (parent !== undefined) throw new BadRequest(`${parent} is a file and a directory`);
  }
}
