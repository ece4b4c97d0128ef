import type { SpanArgs } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";

/** Kind of link of a collective's phase: links between ranks of one host, or the link of a host. */
export type LinkStream = "intra-node" | "inter-node";

/**
 * A part of a collective on one kind of link, with its times without contention: a start-up, which delays no other
 * transfer, then a transfer, which shares the link with other transfers.
 */
export interface Phase {
  readonly stream: LinkStream;
  readonly startupSeconds: number;
  readonly transferSeconds: number;
  /** Number of sequential messages on its busiest path; each may be delayed by members that compute. Default: 0. */
  readonly messages?: number | undefined;
}

/** Earlier tasks that a task depends on. */
interface Needs {
  /** Indices of tasks in the same program, all below the task's own index. */
  readonly after?: readonly number[];
  /** Indices of tasks of the previous step; ignored in the first step. */
  readonly afterPrevious?: readonly number[];
}

/** Computation of a rank. The compute stream runs one task at a time, in the order of the program. */
export interface ComputeTask extends Needs {
  readonly kind: "compute";
  /** Name of its span. */
  readonly name: string;
  readonly args?: SpanArgs | undefined;
  readonly seconds: number;
}

/**
 * Start of a collective. The n-th collective of an axis in one member's program is the same collective as the n-th in
 * the programs of all members of its group.
 */
export interface CollectiveTask extends Needs {
  readonly kind: "collective";
  readonly name: string;
  readonly args?: SpanArgs | undefined;
  readonly collective: CollectiveKind;
  readonly bytes: number;
  /** Key of `SimulatedWorld.groups`. */
  readonly axis: string;
  /**
   * Phases in sequence. Flat: one phase; two-level: intra-node, inter-node, intra-node. Empty: takes no time, as in a
   * group of one rank.
   */
  readonly phases: readonly Phase[];
  /** Lane: collectives of different priorities do not wait for each other. Default: 0. */
  readonly priority?: number | undefined;
  /** Seconds of the member's compute stream to start the collective. Default: 0. */
  readonly startSeconds?: number | undefined;
}

/** Wait of the compute stream for a collective. */
export interface WaitTask extends Needs {
  readonly kind: "wait";
  /** Task index of the collective. */
  readonly for: number;
  /** Whether to wait for the collective of the previous step; in the first step there is no wait. Default: false. */
  readonly previous?: boolean | undefined;
}

/** A task of a simulated rank: compute, start a collective, or wait for a collective. */
export type Task = ComputeTask | CollectiveTask | WaitTask;

/** One step of one rank, in the order of its graph. Tasks that need a collective's result come after its wait. */
export type Program = readonly Task[];

/** Input of a simulation; plain data. Equivalent ranks may share one program object. */
export interface SimulatedWorld {
  /** Program of each rank. */
  readonly programs: readonly Program[];
  /** Groups of ranks for each axis, as made by `meshPartition`. A rank is in at most one group of an axis. */
  readonly groups: { readonly [axis: string]: readonly (readonly number[])[] };
  /** Ranks of each host. Default: every rank on a host of its own. */
  readonly hosts?: readonly (readonly number[])[] | undefined;
}
