import type { Problem } from '../snapshot/problem.ts';
import type { CommitOutput } from './commit.ts';
import type { TemplateConfig } from './config/template-config.ts';
import { linesOf } from './explain-lines.ts';
import type { Notables } from './notables.ts';
import { provenanceOf } from './provenance.ts';
import type { RenderResult } from './render.ts';
import type { SnapshotWorld } from './world.ts';

/** Cells of a render. */
export interface Counts {
  evaluated: number;
  total: number;
}

/** What a render is made of when all its work is done. */
export interface FinishedWork {
  readonly output: CommitOutput;
  readonly world: SnapshotWorld;
  readonly counts: Counts;
  /** What the renderer keeps. */
  readonly held: { readonly cells: number; readonly reads: number };
}

/** What the problems of the last render are made of. */
interface Told {
  readonly ofRoutes: readonly Problem[];
  readonly notables: Notables;
  readonly problems: () => readonly Problem[];
}

/** Renders of one configuration. Lists that grow with the world are made when somebody looks, and kept while they hold. */
export class FinishedRenders {
  readonly #config: TemplateConfig;
  readonly #warnings: readonly Problem[];
  readonly #haproxyVersion: string;
  #told: Told | undefined;

  constructor(config: TemplateConfig, warnings: readonly Problem[], haproxyVersion: string) {
    this.#config = config;
    this.#warnings = warnings;
    this.#haproxyVersion = haproxyVersion;
  }

  of({ output, world, counts, held }: FinishedWork): Extract<RenderResult, { ok: true }> {
    const { plan, files, config, committed } = output;
    const { notables } = committed;
    const problems = this.#problems(world.model.problems, notables);
    return {
      ok: true,
      render: {
        ...{ plan, files, snapshot: world.snapshot, haproxyVersion: this.#haproxyVersion },
        ...{ generation: this.#config.generation, settings: this.#config.dataplane },
        get problems() {
          return problems();
        },
        get statuses() {
          return notables.statuses;
        },
        cells: {
          ...{ evaluated: counts.evaluated, reused: counts.total - counts.evaluated },
          ...{ live: held.cells, reads: held.reads },
        },
        provenance: (line) => provenanceOf(config, line),
        lines: linesOf({ cells: committed, files, model: world.model }),
      },
    };
  }

  #problems(ofRoutes: readonly Problem[], notables: Notables): () => readonly Problem[] {
    const before = this.#told;
    if (before?.ofRoutes === ofRoutes && before.notables === notables) return before.problems;
    let list: readonly Problem[] | undefined;
    const problems = (): readonly Problem[] =>
      (list ??= [...this.#warnings, ...ofRoutes, ...notables.problems]);
    this.#told = { ofRoutes, notables, problems };
    return problems;
  }
}
