import { combineLatest, distinctUntilChanged, map, type Observable, switchMap } from 'rxjs';
import { sha256 } from '../digest.ts';
import type { HaproxyChecker } from '../gate/checker.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ConfigEvent, ResourceSource } from '../ports.ts';
import type { Library } from '../render/config/layers.ts';
import { loadAcceptedConfig } from '../streams/accepted-config.ts';
import { clusterConfig } from '../streams/cluster-config.ts';
import type { CompileSettings } from '../streams/compile-config.ts';
import type { DefaultCertificate } from '../streams/default-certificate.ts';
import { vetConfig } from '../vetting/vet-config.ts';
import { vetProgram } from './programs.ts';
import type { RunSettings } from './run-settings.ts';

/** Where the configurations of a replica come from, and who judges them. */
export interface ClusterConfigsOptions {
  readonly flags: RunSettings;
  /** Lowest HAProxy version of the fleet. */
  readonly version$: Observable<string>;
  readonly certificate$: Observable<DefaultCertificate>;
  readonly libraries: readonly Library[];
  readonly client: KubeClient;
  readonly resources: ResourceSource;
  /** A source for one vetting alone. */
  readonly vettedResources: () => ResourceSource;
  /** A checker of its own: the gate goes on checking meanwhile. */
  readonly check: HaproxyChecker['check'];
}

/** The vetted configurations of a replica, all anew for another default certificate, or another version of the fleet. */
export const clusterConfigs = (options: ClusterConfigsOptions): Observable<ConfigEvent> => {
  const { flags, client, resources, vettedResources, check } = options;
  const config = { namespace: flags.namespace, name: flags.config };
  const compileSettings = ([pem, haproxyVersion]: readonly [
    string | undefined,
    string,
  ]): CompileSettings => ({
    haproxyVersion,
    routing: {
      ingressClass: flags.ingressClass,
      standalone: false,
      ...(pem === undefined ? {} : { defaultCertificate: { pem } }),
    },
  });
  const pem$ = options.certificate$.pipe(
    map(({ pem }) => pem),
    distinctUntilChanged(),
  );
  return combineLatest([pem$, options.version$]).pipe(
    map(compileSettings),
    switchMap((settings) =>
      clusterConfig(resources, {
        config,
        settings,
        libraries: options.libraries,
        digest: sha256,
        overrides: { watchNamespaces: flags.watchNamespaces },
        vet: (one) =>
          vetConfig(one, {
            program: vetProgram(),
            resources: vettedResources(),
            check,
            settings,
          }),
        stored$: loadAcceptedConfig(client, config),
      }),
    ),
  );
};
