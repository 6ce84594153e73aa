import { chunkText } from '../../cells/chunk.ts';
import { serialisePlan } from '../../plan/serialise.ts';
import type { FileKind } from '../../protocol/protocol.ts';
import { nearest } from '../config/layers.ts';
import type { Render, RenderedFile, RenderResult } from '../render.ts';

/** What an assertion looks at: a text, or why there is none. */
export type Target =
  | {
      readonly ok: true;
      readonly text: string;
      /** A file with keys: it is not for a terminal. */
      readonly secret: boolean;
    }
  | { readonly ok: false; readonly message: string };

/** Reasons of a render that failed, one a line; empty for one that did not. */
export const RENDERING_ERROR = 'rendering_error';

const KINDS: Readonly<Record<string, readonly FileKind[]>> = {
  map: ['map'],
  file: ['general'],
  cert: ['cert', 'ca', 'crl'],
  'crt-list': ['crt-list'],
};

/** Whether a file has keys, so that its content is not for a terminal. */
export const isSecret = ({ kind }: Pick<RenderedFile, 'kind'>): boolean =>
  kind === 'cert' || kind === 'ca' || kind === 'crl';

const CONFIG = 'haproxy.cfg';

/**
 * The text that a target names: `haproxy.cfg`, `map:NAME`, `file:NAME`, `cert:NAME`, `crt-list:NAME`, the path of any
 * file, `status:NAMESPACE/NAME` (JSON), `plan` (JSON), `problems` (one a line, with the reason first), or
 * `rendering_error`.
 */
export const targetText = (target: string, result: RenderResult): Target => {
  if (target === RENDERING_ERROR) {
    const problems = result.ok ? [] : result.failure.problems;
    return found(problems.map(({ message }) => message).join('\n'));
  }
  if (!result.ok) return missing(`the render failed, so there is no ${target}`);
  const { render } = result;
  if (target === 'plan') return found(serialisePlan(render.plan));
  if (target === 'problems') {
    return found(render.problems.map(({ reason, message }) => `${reason}: ${message}`).join('\n'));
  }
  return target.startsWith('status:') ? statusText(target, render) : fileText(target, render);
};

const found = (text: string, secret = false): Target => ({ ok: true, text, secret });
const missing = (message: string): Target => ({ ok: false, message });

const statusText = (target: string, { statuses }: Render): Target => {
  const key = target.slice('status:'.length);
  const patches = statuses.filter(
    ({ object: { namespace, name } }) => `${namespace}/${name}` === key,
  );
  const status = Object.assign({}, ...patches.map((patch) => patch.status)) as unknown;
  return patches.length > 0
    ? found(JSON.stringify(status))
    : missing(`there is no status of ${key}`);
};

const fileText = (target: string, render: Render): Target => {
  const path = target === CONFIG ? render.plan.config.path : pathOf(target, render);
  const file = path === undefined ? undefined : render.files.get(path);
  if (file !== undefined) return found(chunkText(file.text), isSecret(file));
  return missing(`there is no ${target}; ${nearest(target, names(render))}`);
};

const pathOf = (target: string, { files }: Render): string | undefined => {
  const [prefix, name] = splitOnce(target);
  const kinds = Object.hasOwn(KINDS, prefix) ? KINDS[prefix] : undefined;
  if (kinds === undefined || name === undefined) return target;
  return [...files.values()].find(
    ({ path, kind }) => kinds.includes(kind) && (path === name || path.endsWith(`/${name}`)),
  )?.path;
};

const splitOnce = (target: string): readonly [string, string | undefined] => {
  const at = target.indexOf(':');
  return at === -1 ? [target, undefined] : [target.slice(0, at), target.slice(at + 1)];
};

/** What could have been meant, as targets. */
const names = ({ files }: Render): readonly string[] => [
  CONFIG,
  ...[...files.values()].flatMap(({ path, kind }) =>
    Object.entries(KINDS)
      .filter(([, kinds]) => kinds.includes(kind))
      .map(([prefix]) => `${prefix}:${path.slice(path.lastIndexOf('/') + 1)}`),
  ),
];
