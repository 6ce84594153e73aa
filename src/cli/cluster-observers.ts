import { map, type Observable } from 'rxjs';
import type { Discovery } from '../kube/api-resource.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Observer, RenderEngine, ResourceSource } from '../ports.ts';
import { configStatus } from '../sinks/config-status.ts';
import { events } from '../sinks/events.ts';
import { gzipTexts } from '../sinks/gzip-texts.ts';
import { ingressStatus } from '../sinks/ingress-status.ts';
import { publisher } from '../sinks/publisher.ts';
import { storeAcceptedConfig } from '../sinks/store-accepted-config.ts';
import { storeQuarantine } from '../sinks/store-quarantine.ts';
import { templateStatus } from '../sinks/template-status.ts';
import type { RunSettings } from './run-settings.ts';

/** What the observers of a replica write with. */
export interface ClusterObserversOptions {
  readonly flags: RunSettings;
  readonly client: KubeClient;
  readonly discovery: Discovery;
  readonly resources: ResourceSource;
  readonly engine$: Observable<RenderEngine>;
}

/** Everything that a leader writes to the API server. */
export const clusterObservers = ({
  flags,
  client,
  discovery,
  resources,
  engine$,
}: ClusterObserversOptions): readonly Observer[] => {
  const { namespace, publishService } = flags;
  const write = { client, random: Math.random };
  const owner = { namespace, name: flags.config };
  const publishing$ = engine$.pipe(map((engine) => engine.controller.configPublishing));
  return [
    configStatus({ ...write, now: () => new Date().toISOString() }),
    storeAcceptedConfig(write),
    storeQuarantine(write),
    events({ ...write, config: owner, identity: flags.identity, now: Date.now }),
    templateStatus({ ...write, discovery }),
    publisher({ ...write, owner, compress: gzipTexts, publishing$, now: Date.now }),
    ...(publishService === undefined
      ? []
      : [
          ingressStatus({
            ...write,
            resources,
            service: { namespace, name: publishService },
            classes: { ...flags.ingressClass, withoutObject: false },
            namespaces: flags.watchNamespaces,
          }),
        ]),
  ];
};
