/** The agents of a release, as its controller reaches them: over mutual TLS, with the controller's own certificate. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, type Observable } from 'rxjs';
import type { AgentState, ApplyConflict, ApplyOutcome } from '../../src/protocol/answers.ts';
import { type Manifest, type Operation, PROTOCOL_VERSION } from '../../src/protocol/protocol.ts';
import { createAgentClient } from '../../src/sinks/agent-client.ts';
import { createAgentTls } from '../../src/sinks/agent-tls.ts';
import type { Pod } from '../../src/ports.ts';
import type { Installation, PodObject } from './installation.ts';

/** What can be asked of the agents. */
export interface LeadersAgents {
  readonly state: (pod: PodObject) => Promise<AgentState>;
  /** What the leader of a term would send: it fits what the pod holds in everything but, it may be, the epoch. */
  readonly apply: (
    pod: PodObject,
    write: { readonly epoch: number; readonly operations: readonly Operation[] },
  ) => Promise<ApplyOutcome | ApplyConflict>;
  readonly close: () => Promise<void>;
}

/** Connects with what the chart has made for the controller. */
export const leadersAgents = async (release: Installation): Promise<LeadersAgents> => {
  const dir = await mkdtemp(join(tmpdir(), 'haptic-leader-'));
  const { data } = await release.get<{ data: Readonly<Record<string, string>> }>(
    'secret',
    `${release.name}-agent-client`,
  );
  for (const [file, content] of Object.entries(data)) {
    await writeFile(join(dir, file), Buffer.from(content, 'base64'), { mode: 0o600 });
  }
  const tls = await createAgentTls({ dir, serverName: 'haptic-agent', onProblem: console.error });
  const client = createAgentClient({ tls, timeoutMs: { state: 10_000, apply: 30_000 } });
  const state = (pod: PodObject): Promise<AgentState> =>
    answerOf(client.state(addressOf(pod), { verify: false }));
  return {
    state,
    apply: async (pod, { epoch, operations }) => {
      const { roles, files } = await state(pod);
      const manifest: Manifest = {
        protocol: PROTOCOL_VERSION,
        planId: '0'.repeat(64),
        epoch,
        sequence: 1,
        expected: roles,
        mode: 'auto',
        reload: false,
        reasons: [],
        reloadNotBeforeMs: 0,
        reloadIntervalMs: 5_000,
        files: files.map(({ path, digest, size }) => ({
          path,
          digest,
          size,
          kind: path === 'haproxy.cfg' ? 'config' : 'general',
        })),
        operations,
        inPlaceOperations: [],
        planLength: 0,
      };
      return answerOf(client.apply(addressOf(pod), { manifest, parts: [], plan: '' }));
    },
    close: async () => {
      await client.close();
      await rm(dir, { recursive: true });
    },
  };
};

const answerOf = async <T>(call$: Observable<T>): Promise<T> => {
  const answer = await firstValueFrom(call$, { defaultValue: undefined });
  if (answer === undefined) throw new Error('the call ended without an answer');
  return answer;
};

const addressOf = ({ metadata: { name }, status: { podIP } }: PodObject): Pod => ({
  key: name,
  name,
  url: `https://${podIP}:5555`,
});
