import type { Digest } from '../protocol/protocol.ts';
import {
  backendRecord,
  buildPlan,
  crtLines,
  crtList,
  mapEntries,
  planFile,
  planMap,
  type BackendInput,
  type PlanParts,
} from './build.ts';
import { requireDocument, type PlanDocument } from './plan-document.ts';
import { merkleMapOf } from './merkle-map.ts';
import type { DigestFunction, Plan, Profile } from './plan.ts';

/** A serialised plan that cannot be used; the baseline it was to give is then unknown. */
export class PlanFormatError extends Error {
  /** `plan-format`: not what {@link serialisePlan} writes. `plan-id`: it is, but its id belongs to another plan. */
  readonly code: 'plan-format' | 'plan-id';
  constructor(code: PlanFormatError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PlanFormatError';
    this.code = code;
  }
}

/** The plan as text: the same for equal plans, and {@link parsePlan} gives back a plan with the same id. */
export function serialisePlan(plan: Plan): string {
  const { schemaVersion, id, config, sections } = plan;
  const document: PlanDocument = {
    schemaVersion,
    id,
    config: { path: config.path, digest: config.digest, size: config.size },
    sections: sections.map(({ kind, name, digest }) =>
      kind === 'backends' ? { kind, name } : { kind, name, digest },
    ),
    profiles: Array.from(plan.profiles.values(), writeProfile),
    backends: Array.from(plan.backends.values(), writeBackend),
    maps: Array.from(plan.maps.values(), ({ path, ordered, text, size, entries }) => ({
      path,
      ordered,
      text,
      size,
      entries: Array.from(entries.values(), ({ key, value }) => [key, value] as const),
    })),
    files: Array.from(plan.files.values(), ({ path, kind, text, size, reloadOnChange }) => ({
      path,
      kind,
      text,
      size,
      reloadOnChange,
    })),
    crtLists: Array.from(plan.crtLists.values(), ({ path, first, text, size, lines }) => ({
      ...{ path, first, text, size },
      lines: Array.from(lines.values(), ({ certificate, options, filters }) => ({
        ...{ certificate, options, filters },
      })),
    })),
  };
  return JSON.stringify(document);
}

const writeProfile = ({
  name,
  mode,
  balance,
  hashType,
  defaultServer,
  digest,
}: Profile): Profile => ({
  ...{ name, digest },
  ...(mode === undefined ? {} : { mode }),
  ...(balance === undefined ? {} : { balance }),
  ...(hashType === undefined ? {} : { hashType }),
  ...(defaultServer === undefined ? {} : { defaultServer }),
});

/** Names every member, so that the text does not depend on how the record was put together. */
const writeBackend = (backend: BackendInput): BackendInput => ({
  name: backend.name,
  mode: backend.mode,
  profile: backend.profile,
  balance: backend.balance,
  ...(backend.hashType === undefined ? {} : { hashType: backend.hashType }),
  structure: backend.structure,
  text: backend.text,
  bare: backend.bare,
  dynamic: backend.dynamic,
  ...(backend.structuralReason === undefined ? {} : { structuralReason: backend.structuralReason }),
  servers: backend.servers.map(({ name, address, port, weight, state, keywords }) => ({
    name,
    address,
    port,
    weight,
    state,
    keywords,
  })),
});

/**
 * The plan that {@link serialisePlan} wrote, every digest computed anew.
 *
 * @throws PlanFormatError for any other text, and when the id is not that of the content
 */
export function parsePlan(text: string, digest: DigestFunction): Plan {
  let plan: Plan;
  let id: Digest;
  try {
    const document = JSON.parse(text) as unknown;
    requireDocument(document);
    ({ id } = document);
    plan = buildPlan(readParts(document, digest), digest);
  } catch (error: unknown) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PlanFormatError('plan-format', `not a plan: ${reason}`, { cause: error });
  }
  if (plan.id !== id)
    throw new PlanFormatError('plan-id', `plan ${id} has the content of ${plan.id}`);
  return plan;
}

const readParts = (document: PlanDocument, digest: DigestFunction): PlanParts => ({
  config: document.config,
  sections: document.sections,
  profiles: merkleMapOf(
    keyed(document.profiles, ({ name }) => name),
    digest,
  ),
  backends: merkleMapOf(
    keyed(
      document.backends.map((backend) => backendRecord(backend, digest)),
      ({ name }) => name,
    ),
    digest,
  ),
  maps: merkleMapOf(
    keyed(
      document.maps.map(({ entries: pairs, ...map }) => {
        const entries = mapEntries(pairs, { ordered: map.ordered, digest });
        return planMap({ ...map, entries }, digest);
      }),
      ({ path }) => path,
    ),
    digest,
  ),
  files: merkleMapOf(
    keyed(
      document.files.map((file) => planFile(file, digest)),
      ({ path }) => path,
    ),
    digest,
  ),
  crtLists: merkleMapOf(
    keyed(
      document.crtLists.map(({ lines, ...list }) =>
        crtList({ ...list, lines: merkleMapOf(crtLines(lines, digest), digest) }, digest),
      ),
      ({ path }) => path,
    ),
    digest,
  ),
});

function keyed<T>(records: readonly T[], key: (record: T) => string): ReadonlyMap<string, T> {
  const map = new Map(records.map((record) => [key(record), record]));
  if (map.size !== records.length) throw new TypeError('a name comes twice');
  return map;
}
