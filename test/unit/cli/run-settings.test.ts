import { describe, expect, it } from 'vitest';
import type { Call } from '../../../src/cli/command.ts';
import { RUN_OPTIONS, runSettings } from '../../../src/cli/run-settings.ts';

const POD = { POD_NAMESPACE: 'haptic', POD_NAME: 'haptic-0' };

const settings = (
  flags: Readonly<Record<string, string>> = {},
  environment: Readonly<Record<string, string>> = POD,
) => {
  const defaults = Object.entries(RUN_OPTIONS).flatMap(([flag, { default: value }]) =>
    typeof value === 'string' ? [[flag, value] as const] : [],
  );
  const call: Call = {
    positionals: [],
    values: { ...Object.fromEntries(defaults), ...flags },
    terminal: {
      out: () => undefined,
      err: () => undefined,
      isTerminal: false,
      environment,
      signal: new AbortController().signal,
    },
  };
  return runSettings(call);
};

describe('settings of haptic run', () => {
  it('has a default for everything but the pod, which comes from its environment', () => {
    expect(settings()).toStrictEqual({
      config: 'haptic-config',
      namespace: 'haptic',
      identity: 'haptic-0',
      workDir: '/run/haptic',
      agentTls: { dir: '/var/run/haptic/tls', serverName: 'haptic-agent' },
      defaultCertificate: undefined,
      publishService: undefined,
      ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
      watchNamespaces: [],
      listen: {
        health: { host: '0.0.0.0', port: 8080 },
        metrics: { host: '0.0.0.0', port: 9090 },
        debug: { host: '127.0.0.1', port: 8081 },
      },
      logLevel: 'info',
    });
  });

  it('takes what is given, lists and IPv6 addresses too', () => {
    expect(
      settings({
        'default-certificate': 'certs/wild',
        'publish-service': 'haptic-haproxy',
        'watch-namespaces': 'blue, red',
        'health-listen': '[::]:18080',
      }),
    ).toMatchObject({
      defaultCertificate: { namespace: 'certs', name: 'wild' },
      publishService: 'haptic-haproxy',
      watchNamespaces: ['blue', 'red'],
      listen: { health: { host: '::', port: 18_080 } },
    });
  });

  it.each([
    [{ config: 'No/Such' }, '--config takes the name of a Kubernetes object, not "No/Such"'],
    [{ 'default-certificate': 'wild' }, '--default-certificate takes NAMESPACE/NAME, not "wild"'],
    [{ 'work-dir': 'tmp' }, '--work-dir takes an absolute path, not "tmp"'],
    [{ 'health-listen': '8080' }, '--health-listen takes HOST:PORT, not "8080"'],
    [{ 'metrics-listen': 'x:99999' }, '--metrics-listen takes HOST:PORT, not "x:99999"'],
    [{ 'log-level': 'loud' }, '--log-level takes debug, info, warn, error'],
    [{ 'watch-namespaces': 'a,B' }, '--watch-namespaces takes the name of a Kubernetes object'],
  ])('refuses %j and names the flag', (flags, message) => {
    expect(() => settings(flags)).toThrow(message);
  });

  it('says which variable is missing outside a pod', () => {
    expect(() => settings({}, {})).toThrow('--namespace is needed where POD_NAMESPACE is not set');
  });
});
