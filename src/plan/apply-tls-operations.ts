import { crtListLine } from '../protocol/crt-list.ts';
import type { CrtListOperation, FileKind, TlsFileOperation } from '../protocol/protocol.ts';
import { crtLine, crtList, planFile } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import { OperationError } from './operation-error.ts';
import type { CrtLine, CrtList, DigestFunction, PlanFile } from './plan.ts';

interface OpenList {
  readonly list: CrtList;
  /** Undefined: deleted. */
  readonly changes: Map<string, CrtLine | undefined>;
}

type Put = Extract<TlsFileOperation, { readonly digest: string }>;

/** TLS files and certificate lists of a state, changed operation by operation. Lives inside one {@link applyOperations}. */
export class TlsEdits {
  readonly #state: RuntimeState;
  readonly #digest: DigestFunction;
  /** Undefined: deleted. */
  readonly #files = new Map<string, PlanFile | undefined>();
  readonly #open = new Map<string, OpenList>();

  constructor(state: RuntimeState, digest: DigestFunction) {
    this.#state = state;
    this.#digest = digest;
  }

  /** A file gets another content, or is new. */
  put({ kind, file: path, digest: text }: Put): void {
    const kinds: readonly FileKind[] = ['cert', 'ca', 'crl'];
    const named = kinds.find((one) => kind.startsWith(`${one}_`)) ?? 'cert';
    const before = this.#files.get(path) ?? this.#state.files.get(path);
    const { size = 0, reloadOnChange = true } = before ?? {};
    this.#files.set(
      path,
      planFile({ path, kind: named, text, size, reloadOnChange }, this.#digest),
    );
  }

  /** Nothing holds the file any more. */
  remove(path: string): void {
    this.#files.set(path, undefined);
  }

  /** @throws OperationError */
  applyToList(operation: CrtListOperation): void {
    const { list: path, entry, kind } = operation;
    const open = this.#find(operation);
    const key = crtListLine(entry);
    const present =
      (open.changes.has(key) ? open.changes.get(key) : open.list.lines.get(key)) !== undefined;
    if (present === (kind === 'crtlist_add')) {
      const what = present ? 'is there already' : 'is not there';
      throw new OperationError(operation, `a line for ${entry.certificate} in ${path} ${what}`);
    }
    open.changes.set(key, kind === 'crtlist_add' ? crtLine(entry, this.#digest) : undefined);
  }

  files(): RuntimeState['files'] {
    return this.#state.files.with(this.#files);
  }

  lists(): RuntimeState['crtLists'] {
    const changes = Array.from(this.#open, ([path, { list, changes: lines }]) => {
      return [path, crtList({ ...list, lines: list.lines.with(lines) }, this.#digest)] as const;
    });
    return this.#state.crtLists.with(new Map(changes));
  }

  #find(operation: CrtListOperation): OpenList {
    const { list: path } = operation;
    const known = this.#open.get(path);
    if (known !== undefined) return known;
    const list = this.#state.crtLists.get(path);
    if (list === undefined) throw new OperationError(operation, `no certificate list ${path}`);
    const open = { list, changes: new Map<string, CrtLine | undefined>() };
    this.#open.set(path, open);
    return open;
  }
}
