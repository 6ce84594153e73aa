import type { Mark } from '../render/language/text.ts';
import type { Judgement, TestReport } from '../render/validation/run-tests.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import type { FileKind } from '../protocol/protocol.ts';
import type { ContentOutcome, Need } from '../snapshot/content.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { CompileSettings } from '../streams/compile-config.ts';

/** What the process does with a configuration that compiles. */
export type VetTask =
  /** Runs its tests, renders the objects, has HAProxy check what comes out. */
  | { readonly type: 'vet' }
  /** Runs these tests and tells of each how it ended. */
  | { readonly type: 'test'; readonly names: readonly string[] }
  /** Renders the objects and hands over what comes out. */
  | { readonly type: 'render' };

/** What the controller tells the process that vets: the configuration, then objects in parts, then answers. */
export type ToVetter =
  | {
      readonly type: 'start';
      readonly config: TemplateConfig;
      readonly settings: CompileSettings;
      readonly task: VetTask;
    }
  | { readonly type: 'objects'; readonly resource: string; readonly objects: readonly KubeObject[] }
  /** All objects are there. */
  | { readonly type: 'render' }
  /** What came of asking for the content of one object. */
  | { readonly type: 'content'; readonly need: Need; readonly outcome: ContentOutcome }
  /** HAProxy's answer to a check. */
  | { readonly type: 'judgement'; readonly judgement: Judgement };

/** What the process that vets tells. Texts of a render come in parts, before the check that they belong to. */
export type FromVetter =
  /** It runs and takes orders. */
  | { readonly type: 'ready' }
  /** The templates compile: objects are wanted. */
  | { readonly type: 'compiled' }
  /** What it does from here on; while it `waits` for the controller its time is not measured. */
  | {
      readonly type: 'phase';
      readonly phase: string;
      readonly waits: boolean;
      /** The test that begins. */
      readonly test?: string;
    }
  /** How a test ended. Times are milliseconds. */
  | { readonly type: 'tested'; readonly report: TestReport; readonly durationMs: number }
  /** Objects on demand whose content the render needs; each is answered once. */
  | { readonly type: 'needs'; readonly needs: readonly Need[] }
  | { readonly type: 'leaves'; readonly leaves: readonly TextLeaf[] }
  | { readonly type: 'check'; readonly render: RenderHead }
  /** The render, whose leaves came before. */
  | {
      readonly type: 'rendered';
      readonly render: RenderHead;
      /** As `serialisePlan` writes it. */
      readonly plan: string;
      readonly problems: readonly Problem[];
    }
  | ({ readonly type: 'done' } & Findings);

/** What came out of vetting a configuration. */
export interface Findings {
  /** Empty: nothing speaks against it. */
  readonly problems: readonly Problem[];
  /** Whether the same configuration may pass later, because other objects or another try decide. */
  readonly mayPass: boolean;
}

/** A part of a text, with where it comes from. */
export interface TextLeaf {
  readonly text: string;
  readonly marks?: readonly Mark[];
  readonly object?: ObjectRef | undefined;
}

/** A render without its texts. */
export interface RenderHead {
  readonly planId: string;
  readonly configPath: string;
  /** In the order of the leaves that came before, each with the number of them. */
  readonly files: readonly {
    readonly path: string;
    readonly kind: FileKind;
    readonly leaves: number;
  }[];
}
