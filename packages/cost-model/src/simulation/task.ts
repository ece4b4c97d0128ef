import type { SpanArgs } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";

/** Type of link of a collective's phase: links between ranks of one host, or the link of a host to other hosts. */
export type LinkStream = "intra-node" | "inter-node";

/**
 * Part of a collective on one type of link, with its times without contention. A phase begins with a start-up, which
 * delays no other transfer, and continues with a transfer, which shares the link with other transfers.
 */
export interface CollectivePhase {
  readonly stream: LinkStream;
  readonly startupSeconds: number;
  readonly transferSeconds: number;
  /**
   * Number of sequential messages on the phase's busiest path. Members that compute may delay each message. Default: 0.
   */
  readonly messages?: number | undefined;
}

/** Dependencies of a task on earlier tasks. */
interface Needs {
  /** Indices of tasks in the same program that must end first; all below the index of this task. */
  readonly after?: readonly number[];
  /** Indices of tasks of the previous step that must end first. Ignored in the first step. */
  readonly afterPrevious?: readonly number[];
}

/** Task of a computation. The compute stream of a rank runs one task at a time, in the order of the program. */
export interface ComputeTask extends Needs {
  readonly kind: "compute";
  /** Name of the task's span. */
  readonly name: string;
  readonly args?: SpanArgs | undefined;
  readonly seconds: number;
}

/**
 * Task that starts a collective. The n-th collective along an axis is the same collective in the programs of all group
 * members.
 */
export interface CollectiveTask extends Needs {
  readonly kind: "collective";
  readonly name: string;
  readonly args?: SpanArgs | undefined;
  readonly collective: CollectiveKind;
  readonly bytes: number;
  /** Axis of the group: a key of `SimulatedWorld.groups`. */
  readonly axis: string;
  /**
   * Phases that run in sequence. Flat algorithm: one phase. Two-level algorithm: intra-node, inter-node, intra-node.
   * Empty: the collective takes no time, as in a group of one rank.
   */
  readonly phases: readonly CollectivePhase[];
  /** Lane of the collective. Collectives of different priorities do not wait for each other. Default: 0. */
  readonly priority?: number | undefined;
  /** Seconds of the member's compute stream to start the collective. Default: 0. */
  readonly startSeconds?: number | undefined;
}

/** Task in which the compute stream waits for a collective. */
export interface WaitTask extends Needs {
  readonly kind: "wait";
  /** Task index of the collective to wait for. */
  readonly for: number;
  /**
   * Whether to wait for the collective of the previous step. In the first step, such a task does nothing. Default:
   * false.
   */
  readonly previous?: boolean | undefined;
}

/** A task of a simulated rank: computing, starting a collective, or waiting for a collective. */
export type SimulatedTask = ComputeTask | CollectiveTask | WaitTask;

/**
 * Tasks of one rank in one step, in the order of its graph. Tasks that need the result of a collective come after the
 * wait for the collective.
 */
export type Program = readonly SimulatedTask[];

/** Ranks, groups and hosts to simulate; plain data. Equivalent ranks may share one program object. */
export interface SimulatedWorld {
  /** Program of each rank. */
  readonly programs: readonly Program[];
  /** Groups of ranks along each axis, in the format of `meshPartition`. A rank is in at most one group of an axis. */
  readonly groups: { readonly [axis: string]: readonly (readonly number[])[] };
  /** Ranks of each host. Default: each rank on a separate host. */
  readonly hosts?: readonly (readonly number[])[] | undefined;
}
