import { objectRef, type KubeObject } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { problemOf, shown, type Complaint } from './complaint.ts';
import type { BackendClaim, Contribution, HostClaim, Owner, PathClaim } from './contribution.ts';
import { at, listAt, textAt } from './fields.ts';
import { ANY_HOST, isLabel, isSubdomain, readHost } from './names.ts';
import { readTls, type ReadContext } from './read-tls.ts';
import { readPath } from './request-path.ts';
import { backendName, readBackend, UNAVAILABLE_BACKEND } from './service-reference.ts';

type DefaultBackend = HostClaim['defaultBackend'];

const NOTHING = {
  hosts: new Map<string, never>(),
  backends: new Map<string, never>(),
  certificates: new Map<string, never>(),
  serverNames: new Map<string, never>(),
};

const NOTHING_TO_SERVE: Complaint = {
  severity: 'warning',
  reason: 'NothingToServe',
  field: 'spec',
  message: 'The Ingress has neither rules nor a default backend; it has no effect.',
  nextStep: 'Add spec.rules or spec.defaultBackend.',
};

/** Collects the Service ports that one Ingress refers to. */
class BackendReader {
  readonly claims = new Map<string, BackendClaim>();
  readonly #context: ReadContext;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  /** Name of the backend to route to: that of the Service port, or the one that answers 503. */
  read(backend: unknown, field: string): string {
    const { owner, report } = this.#context;
    const reference = readBackend(backend, { namespace: owner.object.namespace, field, report });
    if (reference === undefined) return UNAVAILABLE_BACKEND;
    const name = backendName(reference);
    const fields = [...(this.claims.get(name)?.fields ?? []), field];
    this.claims.set(name, { owner, reference, fields });
    return name;
  }
}

const readRuleHost = (rule: unknown, field: string, context: ReadContext): string | undefined => {
  const host = at(rule, 'host') ?? '';
  if (host === '') return ANY_HOST;
  const name = typeof host === 'string' ? readHost(host) : undefined;
  if (name === undefined) {
    context.report({
      reason: 'InvalidHost',
      field: `${field}.host`,
      message: `The host ${shown(host)} is not a DNS name; this rule is left out.`,
      nextStep: 'Write a DNS name such as shop.example.com, or *. followed by one.',
    });
  }
  return name;
};

const readRules = (
  ingress: KubeObject,
  context: ReadContext,
  backends: BackendReader,
): ReadonlyMap<string, PathClaim[]> => {
  const hosts = new Map<string, PathClaim[]>();
  listAt(ingress, 'spec', 'rules').forEach((rule, ruleIndex) => {
    const ruleField = `spec.rules[${ruleIndex}]`;
    const host = readRuleHost(rule, ruleField, context);
    if (host === undefined) return;
    const claims = hosts.get(host) ?? [];
    hosts.set(host, claims);
    listAt(rule, 'http', 'paths').forEach((entry, index) => {
      const field = `${ruleField}.http.paths[${index}]`;
      const path = readPath(entry, field, context.report);
      if (path === undefined) return;
      const backend = backends.read(at(entry, 'backend'), `${field}.backend`);
      claims.push({ ...path, backend, field: `${field}.path` });
    });
  });
  return hosts;
};

const invalidName = (owner: Owner): Complaint | undefined => {
  const { namespace, name } = owner.object;
  const [field, value] = isLabel(namespace)
    ? ['metadata.name', name]
    : ['metadata.namespace', namespace];
  if (isLabel(namespace) && isSubdomain(name)) return undefined;
  return {
    reason: 'InvalidName',
    field,
    message: `Nothing can be called ${shown(value)}; the whole object is left out.`,
    nextStep: 'Use lower-case letters, digits and "-"; a manifest needs a namespace, too.',
  };
};

/**
 * What one Ingress (`networking.k8s.io/v1`) asks for. Reads nothing but this object; whatever is wrong in it becomes a
 * problem, and the rest of it counts.
 */
export const readIngress = (ingress: KubeObject): Contribution => {
  const created = textAt(ingress, 'metadata', 'creationTimestamp');
  const owner: Owner = { object: objectRef(ingress), created };
  const problems: Problem[] = [];
  const report = (complaint: Complaint): void => {
    problems.push(problemOf(owner.object, complaint));
  };
  const fault = invalidName(owner);
  if (fault !== undefined) {
    report(fault);
    return { owner, ...NOTHING, problems };
  }
  const context: ReadContext = { owner, report };
  const backends = new BackendReader(context);
  const rules = readRules(ingress, context, backends);
  const spec = at(ingress, 'spec', 'defaultBackend');
  const field = 'spec.defaultBackend';
  const defaultBackend: DefaultBackend =
    spec === undefined ? undefined : { backend: backends.read(spec, field), field };
  // With rules it is the default of their hosts only, so that no tenant answers for everybody.
  const catchAll = defaultBackend !== undefined && listAt(ingress, 'spec', 'rules').length === 0;
  const paths = catchAll ? new Map<string, PathClaim[]>([[ANY_HOST, []]]) : rules;
  const { covers, ...tls } = readTls(ingress, [...paths.keys()], context);
  if (paths.size === 0 && problems.length === 0) report(NOTHING_TO_SERVE);
  const hosts = new Map<string, HostClaim>();
  for (const [host, claims] of paths) {
    hosts.set(host, { owner, paths: claims, defaultBackend, tls: covers(host) });
  }
  return { owner, hosts, backends: backends.claims, ...tls, problems };
};
