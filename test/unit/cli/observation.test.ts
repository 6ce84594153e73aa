import { pino } from 'pino';
import { Subject } from 'rxjs';
import { afterEach, expect, it } from 'vitest';
import { createObservation, type Observation } from '../../../src/cli/observation.ts';
import { observedBy } from '../../../src/notifications.ts';
import type { Notification } from '../../../src/ports.ts';
import { makeRender } from '../../support/renders.ts';
import { renderWith } from '../../support/world.ts';

const observations: Observation[] = [];
afterEach(() => {
  for (const observation of observations.splice(0)) observation.close();
});

const observed = () => {
  const lines: string[] = [];
  const observation = createObservation({
    logger: pino({ base: null }, { write: (line) => void lines.push(line) }),
    minPods: 0,
    facts: () => ({}),
  });
  observations.push(observation);
  const events$ = new Subject<Notification>();
  const running = events$.pipe(observedBy(observation.observe)).subscribe();
  return { events$, observation, lines, running };
};

it('goes on recording after an event that cannot be recorded', () => {
  const { events$, observation, lines, running } = observed();
  events$.next({ type: 'Rendered', render: makeRender({}), durationMs: NaN });
  events$.next({ type: 'ShuttingDown' });
  running.unsubscribe();
  expect(lines.filter((line) => line.includes('could not be recorded'))).toHaveLength(1);
  expect(observation.status().shuttingDown).toBe(true);
  expect(lines.at(-1)).toContain('shutting down');
});

it('tells no objects of a resource that is no longer watched', async () => {
  const { events$, observation, running } = observed();
  const { snapshot } = renderWith({ servers: ['s'] });
  events$.next({ type: 'Snapshot', snapshot });
  expect(await observation.metrics()).toContain('haptic_objects{resource="servers"} 1');
  events$.next({
    type: 'Snapshot',
    snapshot: { ...snapshot, resources: ['routes'], store: (name) => snapshot.store(name) },
  });
  running.unsubscribe();
  expect(await observation.metrics()).not.toContain('haptic_objects{resource="servers"}');
});
