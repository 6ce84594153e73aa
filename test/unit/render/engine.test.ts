import { expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import {
  EMPTY_SNAPSHOT,
  HEAD,
  backendModel,
  engineOf,
  renderOf,
  server,
  textOf,
} from '../../support/templates.ts';

const MAIN = `{% section "global" %}
${HEAD}{% endsection %}
defaults base
    mode http
{% set defaults %}
    option httplog
{% endset %}
{{ profile({ name: "haptic", body: defaults }) }}
{% cells b in routes.backends %}
{% set body %}
    # for {{ b.object.name | comment }}
    http-request set-header X-B {{ b.name | header }}
{% endset %}
{{ backend({ name: b.name, mode: b.mode, balance: "roundrobin", profile: "haptic", servers: b.servers, body: body }) }}
{% endcells %}
frontend http
    bind :80
`;

test('a configuration is printed with its sections, profile and backends sorted by name', () => {
  const backends = PersistentMap.from([
    ['b', backendModel('b', [server('s2', '10.0.0.2'), server('s1', '2001:db8::1')])],
    ['a', backendModel('a', [{ ...server('s1', '10.0.0.3'), state: 'maint' }])],
  ]);
  const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
  const render = renderOf(engine, EMPTY_SNAPSHOT);
  expect(textOf(render)).toBe(`global
    default-path origin /etc/haproxy
defaults base
    mode http
defaults haptic
    option httplog
backend a from haptic
    mode http
    balance roundrobin
    # for a
    http-request set-header X-B 'a'
    server s1 10.0.0.3:8080 weight 1 disabled

backend b from haptic
    mode http
    balance roundrobin
    # for b
    http-request set-header X-B 'b'
    server s1 [2001:db8::1]:8080 weight 1
    server s2 10.0.0.2:8080 weight 1

frontend http
    bind :80
`);
  expect(render.plan.sections.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'core global',
    'core #1',
    'profile haptic',
    'backends backends',
    'core #2',
  ]);
});
