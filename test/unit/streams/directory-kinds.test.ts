import { describe, expect, it } from 'vitest';
import { isClusterScoped, resourceOfKind } from '../../../src/streams/directory-kinds.ts';

describe('resourceOfKind', () => {
  it.each([
    ['Service', 'services'],
    ['Ingress', 'ingresses'],
    ['IngressClass', 'ingressclasses'],
    ['EndpointSlice', 'endpointslices'],
    ['Endpoints', 'endpoints'],
    ['NetworkPolicy', 'networkpolicies'],
    ['Gateway', 'gateways'],
    ['HTTPRoute', 'httproutes'],
    ['Patch', 'patches'],
    ['Box', 'boxes'],
    ['HAProxyTemplateConfig', 'haproxytemplateconfigs'],
    ['HAProxyTemplateLibrary', 'haproxytemplatelibraries'],
  ])('names the resource of %s', (kind, resource) => {
    expect(resourceOfKind(kind)).toBe(resource);
  });
});

describe('isClusterScoped', () => {
  it('goes by group and kind', () => {
    expect(isClusterScoped('networking.k8s.io/v1', 'IngressClass')).toBe(true);
    expect(isClusterScoped('gateway.networking.k8s.io/v1', 'GatewayClass')).toBe(true);
    expect(isClusterScoped('v1', 'Namespace')).toBe(true);
    expect(isClusterScoped('example.org/v1', 'Namespace')).toBe(false);
    expect(isClusterScoped('networking.k8s.io/v1', 'Ingress')).toBe(false);
  });
});
