import type { RankStep } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import type { JobFacts } from "skein-train/profiling";

/**
 * By which clock kernels were timed. Of a device that tells no times, one span stands for all kernels of a step, and
 * waits lie within it.
 */
export type KernelClock = JobFacts["kernelClock"];

/**
 * What a moment of a step is spent on, the first of these that is under way: a rank that waits while its device
 * computes is not held up.
 */
const order = ["compute", "waiting", "data", "host"] as const;
const orders: Readonly<Record<KernelClock, readonly string[]>> = {
  host: order,
  device: order,
  none: ["waiting", "data", "host", "compute"],
};

/** What a rank's step is spent on, in seconds. Each moment counts once, so that all of it together is the step. */
export interface Attribution {
  /** By the names of spans. */
  readonly compute: ReadonlyMap<string, number>;
  readonly waiting: number;
  readonly data: number;
  readonly host: number;
  /** Moments that no span covers: the way from kernel to kernel, results that are read, other programs on this core. */
  readonly between: number;
}

/** Of spans under way at once, the one that counts: by its track, then the one begun last, which is the inner one. */
const counted = (underWay: ReadonlySet<Span>, order: readonly string[]): Span | undefined => {
  let found: Span | undefined;
  let best: number = order.length;
  for (const span of underWay) {
    const rank = order.indexOf(span.track);
    if (rank <= best) [found, best] = [span, rank];
  }
  return found;
};

/**
 * Share a rank's step out to what it was spent on. What reaches beyond the step is cut off at its ends.
 *
 * Cost: O(spans · (log spans + spans at once)).
 */
export const attribute = (
  { whole, spans }: Pick<RankStep, "whole" | "spans">,
  clock: KernelClock = "host",
): Attribution => {
  const within = (seconds: number): number => Math.min(Math.max(seconds, whole.startSeconds), whole.endSeconds);
  const edges = spans
    .filter(({ track, startSeconds, endSeconds }) => orders[clock].includes(track) && endSeconds > startSeconds)
    .flatMap((span) => [
      { at: within(span.startSeconds), span, begins: true },
      { at: within(span.endSeconds), span, begins: false },
    ])
    .sort((a, b) => a.at - b.at);
  const compute = new Map<string, number>();
  const others = { waiting: 0, data: 0, host: 0, between: 0 };
  const underWay = new Set<Span>();
  let reached = whole.startSeconds;
  const pass = (until: number): void => {
    const seconds = until - reached;
    if (seconds <= 0) return;
    reached = until;
    const span = counted(underWay, orders[clock]);
    if (span === undefined) others.between += seconds;
    else if (span.track === "compute") compute.set(span.name, (compute.get(span.name) ?? 0) + seconds);
    else others[span.track as "waiting" | "data" | "host"] += seconds;
  };
  for (const { at, span, begins } of edges) {
    pass(at);
    if (begins) underWay.add(span);
    else underWay.delete(span);
  }
  pass(whole.endSeconds);
  return { compute, ...others };
};
