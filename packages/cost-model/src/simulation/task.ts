import type { SpanArgs } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";

/** What a phase of a collective travels over: links between ranks of one host, or the link of a host. */
export type LinkStream = "intra-node" | "inter-node";

/**
 * A stretch of a collective on one kind of link, as long as it takes alone: a start-up, which delays nobody else, then
 * the transfer, which shares the link with what else transfers there.
 */
export interface Phase {
  readonly stream: LinkStream;
  readonly startupSeconds: number;
  readonly transferSeconds: number;
  /** On its busiest path, one after the other: each may be delayed by members that compute. Default: 0. */
  readonly messages?: number | undefined;
}

/** Earlier tasks that a task needs. */
interface Needs {
  /** Indices in the same rank's program, all below its own. */
  readonly after?: readonly number[];
  /** Indices of tasks of the step before; in the first step they hold nothing up. */
  readonly afterPrevious?: readonly number[];
}

/** What a rank computes: on its compute stream, one task at a time, in the order of the program. */
export interface ComputeTask extends Needs {
  readonly kind: "compute";
  /** Of its span. */
  readonly name: string;
  readonly args?: SpanArgs | undefined;
  readonly seconds: number;
}

/**
 * The start of a collective. The n-th of an axis in one member's program is the n-th in those of all members of its
 * group.
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
   * One after the other. Flat: one; two-level: intra-node, inter-node, intra-node; none takes no time, as in a group of
   * one.
   */
  readonly phases: readonly Phase[];
  /** Its lane: what has another priority does not wait for it. Default: 0. */
  readonly priority?: number | undefined;
  /** What its start takes of the member's compute stream. Default: 0. */
  readonly startSeconds?: number | undefined;
}

/** The compute stream stands still until a collective is done. */
export interface WaitTask extends Needs {
  readonly kind: "wait";
  /** Index of the collective. */
  readonly for: number;
  /** The collective of the step before is meant; in the first step nothing is waited for. Default: false. */
  readonly previous?: boolean | undefined;
}

/** What a simulated rank does: compute, take part in a collective, or wait for one. */
export type Task = ComputeTask | CollectiveTask | WaitTask;

/** One step of one rank, in the order of its graph. What needs a collective's result stands behind its wait. */
export type Program = readonly Task[];

/** What is simulated; plain data. Ranks that do the same may share one program object. */
export interface SimulatedWorld {
  /** By rank. */
  readonly programs: readonly Program[];
  /**
   * For each axis the groups of ranks, such as `meshPartition` makes them. A rank is in one group of an axis at most.
   */
  readonly groups: { readonly [axis: string]: readonly (readonly number[])[] };
  /** Ranks by host. Default: every rank on a host of its own. */
  readonly hosts?: readonly (readonly number[])[] | undefined;
}
