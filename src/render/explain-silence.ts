import { textAt } from '../routing/fields.ts';
import { CLASS_ANNOTATION, isServed } from '../routing/ingress-class.ts';
import type { KubeObject, ObjectRef } from '../snapshot/objects.ts';
import { SERVICE_LABEL, type Contributors } from './explain-contributors.ts';
import { nameOf } from './language/failure.ts';

type Why = (object: KubeObject, contributors: Contributors) => string;

/** Why an object without a problem made no line, as far as it can be known. */
export const whyNothing: Why = (object, contributors) =>
  (REASONS.get(object.kind) ?? ofOther)(object, contributors);

const ofIngress: Why = (ingress, { served }) => {
  const name =
    textAt(ingress, 'spec', 'ingressClassName') ??
    textAt(ingress, 'metadata', 'annotations', CLASS_ANNOTATION);
  if (isServed(ingress, served)) return 'It is served, and no template made anything of it.';
  const names = [...served.names].sort();
  const ours = names.length === 0 ? 'no class is served here' : `served here: ${names.join(', ')}`;
  return name === undefined
    ? `It names no class, and no class that is served here is the default (${ours}).`
    : `Its class is ${JSON.stringify(name)}, which is not served here (${ours}).`;
};

const ofService: Why = ({ metadata: { namespace = '', name } }, contributors) =>
  referred(contributors.naming('Service', namespace, name), 'refers to it');

const ofSecret: Why = ({ metadata: { namespace = '', name } }, contributors) =>
  referred(contributors.naming('Secret', namespace, name), 'names it in spec.tls');

const ofSlice: Why = (slice, contributors) => {
  const { namespace = '' } = slice.metadata;
  const service = textAt(slice, 'metadata', 'labels', SERVICE_LABEL);
  if (service === undefined)
    return `It has no label ${SERVICE_LABEL}, so it belongs to no Service.`;
  const naming = contributors.naming('Service', namespace, service);
  const whose = `It belongs to Service ${namespace}/${service}`;
  return naming.length === 0
    ? `${whose}, and no Ingress that is served refers to that.`
    : `${whose}; none of its endpoints is ready for the port that is asked for.`;
};

const ofClass: Why = ({ metadata: { name } }, { served }) =>
  served.names.has(name)
    ? 'It makes no lines itself: Ingresses of this class are served.'
    : 'It makes no lines itself: Ingresses of this class are not served, because its controller is another one.';

const ofOther: Why = () =>
  'No cell is made for it, or its cell makes nothing; templates may still have looked at it.';

const referred = (naming: readonly ObjectRef[], how: string): string =>
  naming.length === 0
    ? `No Ingress that is served ${how}.`
    : `${naming.map(nameOf).join(', ')} ${how}; look at what is wrong there.`;

const REASONS: ReadonlyMap<string, Why> = new Map([
  ['Ingress', ofIngress],
  ['Service', ofService],
  ['Secret', ofSecret],
  ['EndpointSlice', ofSlice],
  ['IngressClass', ofClass],
]);
