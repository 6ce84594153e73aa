import { fc, test } from '@fast-check/vitest';
import { timer } from 'rxjs';
import { describe, expect } from 'vitest';
import type { ApiResource } from '../../../src/kube/api-resource.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { listWatch } from '../../../src/streams/list-watch.ts';
import { mergeNamespaces } from '../../../src/streams/merge-namespaces.ts';
import { ApiModel } from '../../support/api-model.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { modelClient, type ModelAnswer } from '../../support/model-client.ts';
import { contentOf, foldEvent } from '../../support/watching.ts';

const API: ApiResource = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

const key = fc.constantFrom('shop/a', 'shop/b', 'shop/__proto__', 'blog/a', 'blog/c');
const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), key }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('recreate' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('compact' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('forget' as const), key }) },
);
/** Changes close together and with long pauses between them. */
const pauseMs = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 200, max: 100_000 }));
const history = fc.array(fc.tuple(pauseMs, operation), { minLength: 1, maxLength: 40 });

const after = fc.integer({ min: 0, max: 3 });
const fault = fc.oneof(
  fc.record({
    type: fc.constant('refused' as const),
    code: fc.constantFrom(
      'unreachable',
      'server',
      'gone',
      'forbidden',
      'too-many-requests',
      'timeout',
    ),
  }),
  fc.record({ type: fc.constant('broken' as const), after }),
  fc.record({
    type: fc.constant('error-event' as const),
    after,
    status: fc.constantFrom(410, 500, 504),
  }),
  fc.record({ type: fc.constant('ended' as const), after }),
  fc.record({ type: fc.constant('silent' as const) }),
  fc.record({ type: fc.constant('twice' as const) }),
);
const answer = fc.record({
  latencyMs: fc.constantFrom(0, 1, 20, 400),
  fault: fc.option(fault, { nil: undefined, freq: 2 }),
});
const answers = fc.array(answer, { maxLength: 40 });

/** After the last fault and the last change: longer than any wait and silence together. */
const REST_MS = 400_000;

const perform = (
  model: ApiModel,
  operation: { readonly do: string; readonly key: string },
): void => {
  if (operation.do !== 'put' && operation.do !== 'compact') model.remove(operation.key);
  if (operation.do === 'put' || operation.do === 'recreate') model.put(operation.key);
  if (operation.do === 'compact' || operation.do === 'forget') model.compact();
};

/** Runs a history against a watch in virtual time; the answers go wrong as the script says, and then no more. */
const play = (
  steps: readonly (readonly [number, { readonly do: string; readonly key: string }])[],
  script: readonly ModelAnswer[],
  watch: (client: KubeClient) => ReturnType<typeof listWatch>,
) => {
  const model = new ApiModel();
  model.put('shop/a');
  model.put('blog/a');
  const had = new Set([JSON.stringify(contentOf(model.objects))]);
  model.onChange(() => had.add(JSON.stringify(contentOf(model.objects))));
  const events: WatchEvent[] = [];
  const states: string[] = [];
  inVirtualTime((helpers) => {
    const rest = [...script];
    const client = modelClient(model, () => rest.shift() ?? { latencyMs: 1, fault: undefined });
    let state: ReturnType<typeof foldEvent> = new Map();
    const subscription = watch(client).subscribe((event) => {
      events.push(event);
      state = foldEvent(state, event);
      states.push(JSON.stringify(contentOf(state.values())));
    });
    let at = 0;
    for (const [pause, operation] of steps) {
      at += pause;
      timer(at).subscribe(() => perform(model, operation));
    }
    // Every fault may cost a wait and a silence.
    timer(at + REST_MS + script.length * 120_000).subscribe(() => subscription.unsubscribe());
    helpers.flush();
  });
  return { had, events, states, end: JSON.stringify(contentOf(model.objects)) };
};

const random = (): number => 0.5;

describe('list-watch', () => {
  test.prop([history, answers])(
    'R14: whatever goes wrong, it ends in what the server holds, by states the server had',
    (steps, script) => {
      const { had, events, states, end } = play(steps, script, (client) =>
        listWatch({ client, api: API, random }),
      );
      expect(events[0]?.type).toBe('Replaced');
      expect(states.filter((state) => !had.has(state))).toStrictEqual([]);
      expect(states.at(-1)).toBe(end);
    },
  );

  test.prop([history, answers])(
    'R14, G4: several namespaces start with one whole list and end in what the server holds',
    (steps, script) => {
      const { events, states, end } = play(steps, script, (client) =>
        mergeNamespaces(
          ['shop', 'blog'].map((namespace) => listWatch({ client, api: API, random, namespace })),
        ),
      );
      expect(events.filter(({ type }) => type === 'Replaced').length).toBe(1);
      expect(events[0]?.type).toBe('Replaced');
      expect(states.at(-1)).toBe(end);
    },
  );
});
