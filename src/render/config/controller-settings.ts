import type {
  ConfigPublishingSettings,
  ControllerSettings,
  LeaderElectionSettings,
} from '../render.ts';
import type { Layer } from './layers.ts';

const LEADER_ELECTION = {
  enabled: true,
  leaseDurationMs: 30_000,
  renewDeadlineMs: 20_000,
  retryPeriodMs: 5_000,
} satisfies Partial<LeaderElectionSettings>;

const CONFIG_PUBLISHING: ConfigPublishingSettings = {
  enabled: true,
  compressionThreshold: 2 ** 16,
};

/** A name of an object: an RFC 1123 subdomain. */
const OBJECT_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

/**
 * The controller settings of all layers, the latest of each wins; undefined after a report of a set that cannot work.
 *
 * @param configName name of the configuration object
 */
export const controllerSettings = (
  layers: readonly Layer[],
  configName: string,
): ControllerSettings | undefined => {
  let election: LeaderElectionSettings = { ...LEADER_ELECTION, leaseName: configName };
  let publishing = CONFIG_PUBLISHING;
  for (const { spec } of layers) {
    election = { ...election, ...electionOf(spec) };
    publishing = { ...publishing, ...spec.controller?.configPublishing };
  }
  const settings = { leaderElection: election, configPublishing: publishing };
  const refusal = refusalOf(election);
  if (refusal === undefined) return settings;
  layers
    .at(-1)
    ?.report(`spec.controller.leaderElection.${refusal.member}`, refusal.message, refusal.nextStep);
  return undefined;
};

const electionOf = ({ controller }: Layer['spec']): Partial<LeaderElectionSettings> => {
  const { leaseDuration, renewDeadline, retryPeriod, ...others } = controller?.leaderElection ?? {};
  return {
    ...others,
    ...(leaseDuration !== undefined && { leaseDurationMs: leaseDuration }),
    ...(renewDeadline !== undefined && { renewDeadlineMs: renewDeadline }),
    ...(retryPeriod !== undefined && { retryPeriodMs: retryPeriod }),
  };
};

interface Refusal {
  readonly member: string;
  readonly message: string;
  readonly nextStep: string;
}

/** A leader has to give up before others may take over, and to have tried more than once by then. */
const refusalOf = (settings: LeaderElectionSettings): Refusal | undefined => {
  const { leaseName, leaseDurationMs, renewDeadlineMs, retryPeriodMs } = settings;
  if (!OBJECT_NAME.test(leaseName)) {
    return {
      member: 'leaseName',
      message: 'is not a name for an object',
      nextStep: 'Use lower-case letters, digits, "-" and ".".',
    };
  }
  if (leaseDurationMs <= renewDeadlineMs) {
    return {
      member: 'renewDeadline',
      message: `must be shorter than leaseDuration: ${renewDeadlineMs}ms is not less than ${leaseDurationMs}ms`,
      nextStep: 'Lower renewDeadline, or raise leaseDuration; 20s and 30s are the defaults.',
    };
  }
  if (renewDeadlineMs > retryPeriodMs) return undefined;
  return {
    member: 'retryPeriod',
    message: `must be shorter than renewDeadline: ${retryPeriodMs}ms is not less than ${renewDeadlineMs}ms`,
    nextStep: 'Lower retryPeriod, or raise renewDeadline; 5s and 20s are the defaults.',
  };
};
