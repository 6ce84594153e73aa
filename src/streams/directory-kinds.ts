/** What an API server knows of kinds, as far as a directory of manifests needs it. */

const PLURALS: ReadonlyMap<string, string> = new Map([
  ['Endpoints', 'endpoints'],
  ['HAProxyCfg', 'haproxycfgs'],
]);

/**
 * The resource (lower-case plural) of a kind: a few irregular ones by name, all others by the rule of English spelling
 * that API groups follow: `Ingress` → `ingresses`, `NetworkPolicy` → `networkpolicies`, `Gateway` → `gateways`.
 */
export const resourceOfKind = (kind: string): string => {
  const known = PLURALS.get(kind);
  if (known !== undefined) return known;
  const word = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`;
};

/** The API group of an apiVersion; empty for the core group. */
export const groupOf = (apiVersion: string): string => {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
};

const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  '/ComponentStatus',
  '/Namespace',
  '/Node',
  '/PersistentVolume',
  'admissionregistration.k8s.io/MutatingWebhookConfiguration',
  'admissionregistration.k8s.io/ValidatingAdmissionPolicy',
  'admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding',
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration',
  'apiextensions.k8s.io/CustomResourceDefinition',
  'apiregistration.k8s.io/APIService',
  'certificates.k8s.io/CertificateSigningRequest',
  'gateway.networking.k8s.io/GatewayClass',
  'networking.k8s.io/IngressClass',
  'node.k8s.io/RuntimeClass',
  'policy/PodSecurityPolicy',
  'rbac.authorization.k8s.io/ClusterRole',
  'rbac.authorization.k8s.io/ClusterRoleBinding',
  'scheduling.k8s.io/PriorityClass',
  'storage.k8s.io/CSIDriver',
  'storage.k8s.io/StorageClass',
  'storage.k8s.io/VolumeAttachment',
  'cert-manager.io/ClusterIssuer',
]);

/** Whether objects of a kind have no namespace. Kinds that are not in the table have one. */
export const isClusterScoped = (apiVersion: string, kind: string): boolean =>
  CLUSTER_SCOPED.has(`${groupOf(apiVersion)}/${kind}`);
