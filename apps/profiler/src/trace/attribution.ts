import type { RankStep } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import type { JobFacts } from "skein-train/profiling";

/**
 * Clock that timed the kernels. `none`: the device reports no times, so a step has a single span for all kernels, which
 * includes waits.
 */
export type KernelClock = JobFacts["kernelClock"];

/**
 * Tracks in order of precedence. If several tracks are active, the time is attributed to the first active track. For
 * example, a rank that waits while its device computes is not delayed by the wait.
 */
const precedence = ["compute", "waiting", "data", "host"] as const;
const precedences: Readonly<Record<KernelClock, readonly string[]>> = {
  host: precedence,
  device: precedence,
  none: ["waiting", "data", "host", "compute"],
};

/**
 * Seconds of a rank's step, by activity. Each moment is attributed to one activity, so the seconds add up to the step
 * time.
 */
export interface Attribution {
  /** Seconds of kernels, by span name. */
  readonly compute: ReadonlyMap<string, number>;
  readonly waiting: number;
  readonly data: number;
  readonly host: number;
  /** Seconds without a span: time between kernels, reading of results, and other programs on this core. */
  readonly between: number;
}

/**
 * Returns the active span to which time is attributed: the span on the track with the highest precedence, and among
 * spans on this track the span that began last, which is the innermost span.
 */
const counted = (active: ReadonlySet<Span>, precedence: readonly string[]): Span | undefined => {
  let found: Span | undefined;
  let best: number = precedence.length;
  for (const span of active) {
    const rank = precedence.indexOf(span.track);
    if (rank <= best) [found, best] = [span, rank];
  }
  return found;
};

/**
 * Attributes the time of a rank's step to activities. Parts of spans outside the step are ignored.
 *
 * Cost: O(spans · (log spans + concurrent spans)).
 */
export const attribute = (
  { whole, spans }: Pick<RankStep, "whole" | "spans">,
  clock: KernelClock = "host",
): Attribution => {
  const within = (seconds: number): number => Math.min(Math.max(seconds, whole.startSeconds), whole.endSeconds);
  const edges = spans
    .filter(({ track, startSeconds, endSeconds }) => precedences[clock].includes(track) && endSeconds > startSeconds)
    .flatMap((span) => [
      { at: within(span.startSeconds), span, begins: true },
      { at: within(span.endSeconds), span, begins: false },
    ])
    .sort((a, b) => a.at - b.at);
  const compute = new Map<string, number>();
  const others = { waiting: 0, data: 0, host: 0, between: 0 };
  const active = new Set<Span>();
  let reached = whole.startSeconds;
  const pass = (until: number): void => {
    const seconds = until - reached;
    if (seconds <= 0) return;
    reached = until;
    const span = counted(active, precedences[clock]);
    if (span === undefined) others.between += seconds;
    else if (span.track === "compute") compute.set(span.name, (compute.get(span.name) ?? 0) + seconds);
    else others[span.track as "waiting" | "data" | "host"] += seconds;
  };
  for (const { at, span, begins } of edges) {
    pass(at);
    if (begins) active.add(span);
    else active.delete(span);
  }
  pass(whole.endSeconds);
  return { compute, ...others };
};
