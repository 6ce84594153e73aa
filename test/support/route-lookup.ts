import type { HostRoutes, RouteModel } from '../../src/routing/model.ts';

/** What the route model says of one request, looked up as a proxy would do it. */
export type Looked =
  | { readonly kind: 'backend'; readonly backend: string }
  | { readonly kind: 'redirect' }
  | { readonly kind: 'notFound' };

const hostOf = ({ hosts }: RouteModel, host: string): HostRoutes | undefined =>
  hosts.get(host) ?? hosts.get(`*.${host.split('.').slice(1).join('.')}`) ?? hosts.get('*');

const backendOf = (host: HostRoutes, path: string): string | undefined => {
  const exact = host.exact.find((route) => route.path === path);
  if (exact !== undefined) return exact.backend;
  const prefixes = host.prefix.filter((route) => `${path}/`.startsWith(`${route.path}/`));
  const longest = prefixes.sort((left, right) => right.path.length - left.path.length)[0];
  return longest?.backend ?? host.defaultBackend;
};

export const lookUp = (
  model: RouteModel,
  request: { readonly scheme: 'http' | 'https'; readonly host: string; readonly path: string },
): Looked => {
  const host = hostOf(model, request.host.replace(/:\d+$/, '').toLowerCase());
  if (host === undefined) return { kind: 'notFound' };
  if (host.httpsRedirect && request.scheme === 'http') return { kind: 'redirect' };
  const backend = backendOf(host, request.path);
  return backend === undefined ? { kind: 'notFound' } : { kind: 'backend', backend };
};
