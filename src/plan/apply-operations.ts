import type { Operation, TlsFileOperation } from '../protocol/protocol.ts';
import { BackendEdits } from './apply-backend-operations.ts';
import { MapEdits } from './apply-map-operations.ts';
import { TlsEdits } from './apply-tls-operations.ts';
import type { RuntimeState } from './change-set.ts';
import { OperationError } from './operation-error.ts';
import type { DigestFunction } from './plan.ts';

/**
 * What a worker holds after these operations, all of them executed. Texts of backends, maps and lists stay those of `state`: they
 * are the files' business. Costs what the operations touch.
 *
 * @throws OperationError for an operation that a worker in this state would refuse
 */
export function applyOperations(
  state: RuntimeState,
  operations: readonly Operation[],
  digest: DigestFunction,
): RuntimeState {
  const backends = new BackendEdits(state, digest);
  const maps = new MapEdits(state, digest);
  const tls = new TlsEdits(state, digest);
  for (const operation of operations) {
    if ('backend' in operation) backends.apply(operation);
    else if ('map' in operation) maps.apply(operation);
    else if ('list' in operation) tls.applyToList(operation);
    else if ('digest' in operation) tls.put(operation);
    else if (isRemoval(operation)) tls.remove(operation.file);
    else throw new OperationError(operation, 'is not part of any plan');
  }
  return {
    profiles: state.profiles,
    backends: backends.result(),
    maps: maps.result(),
    files: tls.files(),
    crtLists: tls.lists(),
  };
}

const isRemoval = (operation: Operation): operation is TlsFileOperation =>
  operation.kind === 'cert_remove' ||
  operation.kind === 'ca_remove' ||
  operation.kind === 'crl_remove';
