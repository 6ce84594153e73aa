import type { ApiResource } from '../kube/api-resource.ts';
import { KubeError, type KubeErrorCode } from '../kube/client.ts';
import type { Problem } from '../snapshot/problem.ts';

/** A call to the API server, as far as messages need it. */
export interface ApiCall {
  readonly verb: 'apply' | 'create' | 'delete' | 'list' | 'get';
  readonly resource: Pick<ApiResource, 'apiVersion' | 'kind' | 'plural'>;
  /** Empty for cluster-scoped objects, and for a list over all namespaces. */
  readonly namespace: string;
  readonly name?: string;
  readonly subresource?: 'status';
}

/** A call that failed, with what it was to do. */
export class CallFailed extends Error {
  readonly call: ApiCall;
  declare readonly cause: KubeError;
  /** Somebody has told it. */
  told = false;

  private constructor(call: ApiCall, cause: KubeError) {
    super(cause.message, { cause });
    this.name = 'CallFailed';
    this.call = call;
  }

  /** Wraps an error of the client; any other error is a defect and is thrown as it is. */
  static of(call: ApiCall, error: unknown): CallFailed {
    if (error instanceof KubeError) return new CallFailed(call, error);
    throw error;
  }

  get code(): KubeErrorCode {
    return this.cause.code;
  }
}

/** What a failed call means for a person: which right, which resource, and what to do. */
export const callProblem = ({ call, code, message }: CallFailed): Problem => {
  const target = targetOf(call);
  switch (code) {
    case 'forbidden':
      return problem('ApiForbidden', `May not ${rightsOf(call)} ${target}.`, grant(call));
    case 'unauthorized':
      return problem(
        'ApiUnauthorized',
        `The API server does not accept the controller's credentials: ${message}`,
        'Check that the service account exists and that its token is mounted.',
      );
    case 'not-found':
      return call.verb === 'get'
        ? problem(
            'ObjectNotFound',
            `${call.resource.kind} ${call.namespace}/${call.name ?? ''} does not exist.`,
            'Create it, or name another one with --config; until then nothing is published.',
          )
        : problem(
            'ResourceNotServed',
            `The API server does not serve ${target}.`,
            `Install the CustomResourceDefinitions of this version (kubectl apply --server-side -f chart/crds).`,
          );
    case 'invalid':
      return problem(
        'ApiRefusedObject',
        `The API server refused ${call.verb} of ${target} ${call.name ?? ''}: ${message}`,
        'Install the CustomResourceDefinitions of this version, and look for an admission webhook that refuses it.',
      );
    case 'conflict':
      return problem(
        'ApiConflict',
        `${call.verb} of ${target} ${call.name ?? ''} met another version: ${message}`,
        'It is tried again; if it stays, look for somebody else who deletes and creates it.',
      );
    default:
      return problem(
        'ApiUnavailable',
        `${call.verb} of ${target} failed: ${message}`,
        'It is tried again; if it stays, check the API server.',
      );
  }
};

const problem = (reason: string, message: string, nextStep: string): Problem => ({
  severity: 'warning',
  reason,
  message,
  nextStep,
});

const targetOf = ({ resource, subresource, namespace }: ApiCall): string => {
  const what = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
  return namespace === '' ? what : `${what} in namespace ${namespace}`;
};

/** Server-side apply needs both verbs, since it creates what is not there. */
const rightsOf = ({ verb, subresource }: ApiCall): string => {
  if (verb !== 'apply') return verb;
  return subresource === undefined ? 'create and patch' : 'patch';
};

const grant = (call: ApiCall): string => {
  const { resource, subresource, namespace } = call;
  const verbs = rightsOf(call)
    .split(' and ')
    .map((verb) => `"${verb}"`)
    .join(', ');
  const what = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
  const [group = ''] = resource.apiVersion.includes('/') ? resource.apiVersion.split('/') : [''];
  const where =
    namespace === '' ? 'a ClusterRole' : `a Role in namespace ${namespace} or a ClusterRole`;
  return `Grant the controller's service account verbs [${verbs}] on resource "${what}" of apiGroup "${group}" by ${where}; the chart's RBAC does.`;
};
