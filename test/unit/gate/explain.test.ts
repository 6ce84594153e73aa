import { describe, expect, it } from 'vitest';
import { type Alert, parseAlerts } from '../../../src/gate/alerts.ts';
import { explain } from '../../../src/gate/explain.ts';
import { configText, ingressRef, makeRender } from '../../support/renders.ts';

const config = configText(`    use_backend nope if { path /a }
    fooo bar
backend be
    server s1 127.0.0.1:80
    server s2 127.0.0.1:99999
`);
const render = makeRender({
  config,
  files: { 'maps/hosts.map': 'a b\n' },
  provenance: {
    8: { template: 'frontends', line: 3, object: undefined },
    10: { template: 'ingress/routes', line: 12, object: ingressRef('shop') },
    11: { template: 'ingress/snippet', line: 2, object: ingressRef('café') },
    12: { template: 'ingress/backend', line: 1, object: ingressRef('shop') },
    14: { template: 'ingress/server', line: 4, object: ingressRef('shop') },
  },
});

const alertsOf = (message: string): readonly Alert[] => parseAlerts(`[ALERT] (9) : ${message}`);
const tell = (message: string) => explain(alertsOf(message), render, { directory: '/m' });

describe('explain', () => {
  it('names template, line and object of the line an alert points at, in HAProxy’s own words', () => {
    expect(tell("config : parsing [/m/haproxy.cfg:11] : unknown keyword 'fooo'").problems).toEqual([
      {
        severity: 'error',
        reason: 'RefusedByHAProxy',
        message: "HAProxy refuses haproxy.cfg line 11: unknown keyword 'fooo'",
        nextStep: 'Change Ingress default/café, or line 2 of template ingress/snippet.',
        object: ingressRef('café'),
        place: { source: 'ingress/snippet', line: 2 },
      },
    ]);
  });

  it('names the template alone where no object is behind the line', () => {
    const [problem] = tell("config : [/m/haproxy.cfg:8] : 'frontend main' : bad").problems;
    expect(problem?.object).toBeUndefined();
    expect(problem?.nextStep).toBe('Change line 3 of template frontends.');
  });

  it('names the rendered line where nobody knows more', () => {
    const [problem] = tell('config : parsing [/m/haproxy.cfg:2] : bad').problems;
    expect(problem?.place).toEqual({ source: 'haproxy.cfg', line: 2 });
  });

  it('leads a missing backend back to the line that asks for it', () => {
    const [problem] = tell("Proxy 'main': unable to find required use_backend: 'nope'.").problems;
    expect(problem).toMatchObject({
      object: ingressRef('shop'),
      place: { source: 'ingress/routes', line: 12 },
    });
    expect(problem?.message).toContain('haproxy.cfg line 10');
  });

  it('leads a server that is named without a line back to its backend', () => {
    const [problem] = tell("config : 'server be/s2' : something").problems;
    expect(problem?.place).toEqual({ source: 'ingress/server', line: 4 });
  });

  it('leads a proxy that is named alone back to its section', () => {
    expect(tell("Proxy 'be': bad").problems[0]?.place).toEqual({
      source: 'ingress/backend',
      line: 1,
    });
  });

  it('says so when a name stands nowhere', () => {
    const [problem] = tell("Proxy 'elsewhere': bad").problems;
    expect(problem?.place).toBeUndefined();
    expect(problem?.message).toBe("HAProxy refuses the configuration: Proxy 'elsewhere': bad");
  });

  it('keeps the file of an alert about another file, and does not take its line for the configuration’s', () => {
    const [problem] = tell('config : parsing [/m/maps/hosts.map:11] : bad').problems;
    expect(problem?.message).toBe('HAProxy refuses maps/hosts.map line 11: bad');
    expect(problem?.object).toBeUndefined();
  });

  it('takes the directory of the check out of the words', () => {
    const [problem] = tell("config : parsing [/m/haproxy.cfg:2] : no '/m/ssl/a.pem'").problems;
    expect(problem?.message).toContain("no 'ssl/a.pem'");
  });

  it('tells what HAProxy says twice once, with the longer words', () => {
    const twice = [
      ...alertsOf('config : parsing [/m/haproxy.cfg:2] : same name.'),
      ...alertsOf('config : parsing [/m/haproxy.cfg:2] : same name. Rename one.'),
      ...alertsOf('config : parsing [/m/haproxy.cfg:2] : same name.'),
    ];
    const { problems, message } = explain(twice, render, { directory: '/m' });
    expect(problems).toHaveLength(1);
    expect(message).toBe('HAProxy refuses haproxy.cfg line 2: same name. Rename one.');
  });

  it('shortens a list of every keyword', () => {
    const [problem] = tell(`config : parsing [/m/haproxy.cfg:2] : ${'x'.repeat(9000)}`).problems;
    expect(problem?.message).toHaveLength(2000 + 'HAProxy refuses haproxy.cfg line 2: …'.length);
  });

  it('tells at most twenty', () => {
    const many = Array.from({ length: 30 }, (_, line) =>
      alertsOf(`config : parsing [/m/haproxy.cfg:${line + 1}] : bad`),
    ).flat();
    expect(explain(many, render, { directory: '/m' }).problems).toHaveLength(20);
  });
});
