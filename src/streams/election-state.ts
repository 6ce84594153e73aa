import type { Observable } from 'rxjs';
import type { KubeClient } from '../kube/client.ts';
import { type Lease, type LeaseName, type SeenLease, usableEpoch } from '../kube/lease.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Failing } from './election-problems.ts';

/** Times of an election in milliseconds; see {@link leadership} for what they do. */
export interface ElectionSettings {
  /** Default 30,000. */
  readonly leaseDurationMs: number;
  /** Default 20,000; less than the lease duration. */
  readonly renewDeadlineMs: number;
  /** Default 5,000; less than the renew deadline. */
  readonly retryPeriodMs: number;
}

/** What an election needs. */
export interface ElectionOptions {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  /** Of this replica; no other may have it. A replica that starts anew under its old identity takes its Lease back at once. */
  readonly identity: string;
  /** Asked before each step, so a new configuration changes the times without a new term. */
  readonly settings: () => ElectionSettings;
  /** The highest epoch any agent reports; emits once, in bounded time: see `highestAgentEpoch`. */
  readonly agentEpoch$: Observable<number>;
  /** Epochs, higher than our own, with which agents fenced us off. Never errors. */
  readonly overtaken$: Observable<number>;
  /** Emits when nothing is written any more: the Lease is given back, and the election completes. */
  readonly release$: Observable<unknown>;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** A clock in milliseconds that only goes forward. Default: RxJS's `asyncScheduler`. */
  readonly now?: () => number;
  /** The time of day in milliseconds, written for readers and never compared. Default: RxJS's `asyncScheduler`. */
  readonly wallNow?: () => number;
}

/** What agents have fenced us off with. */
export interface Reports {
  /** Of the epochs that an election can give; 0 before the first. */
  readonly highest: number;
  /** One that no election gives. */
  readonly absurd: number | undefined;
}

/** One time of leading. */
export interface Term {
  readonly lease: Lease;
  readonly epoch: number;
  /** When it is over unless it was renewed; counted from the start of the request that took or renewed the Lease. */
  readonly lostAt: number;
  /** When its epoch was last raised, so that an agent that always reports more cannot make it spin. */
  readonly raisedAt: number;
}

/** Where an election stands. */
export interface State {
  readonly term: Term | undefined;
  readonly seen: SeenLease | undefined;
  /** The highest epoch this replica has held. */
  readonly held: number;
  readonly failing: Failing | undefined;
  readonly odd: readonly Problem[];
  /** When the Lease is looked at next. */
  readonly pauseMs: number;
}

/** Nothing was reported yet. */
export const NO_REPORT: Reports = { highest: 0, absurd: undefined };

/** What is known after one more report. */
export const addReport = ({ highest, absurd }: Reports, epoch: number): Reports =>
  usableEpoch(epoch) === undefined
    ? { highest, absurd: absurd ?? epoch }
    : { highest: Math.max(highest, epoch), absurd };

/** Before the first look. */
export const NOBODY: State = {
  term: undefined,
  seen: undefined,
  held: 0,
  failing: undefined,
  odd: [],
  pauseMs: 0,
};
