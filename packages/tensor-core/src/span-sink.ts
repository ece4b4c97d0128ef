import type { Phase } from "./graph/graph.ts";

/**
 * What a rank does beside what else it does, each kind on a track of its own, in the order in which people see them.
 *
 * | track | its spans |
 * | --- | --- |
 * | steps | one per training step, from the wish for a batch until the loss is known |
 * | data | getting a batch |
 * | host | what the rank's thread does itself: tracing, compiling, starting collectives, saving |
 * | compute | kernels; on WebGPU by the device's clock |
 * | collectives | one per collective, from when the communicator was handed it until its result was there; several may be under way at once |
 * | waiting | one per wait for a collective: communication that computation did not hide |
 */
export const tracks = ["steps", "data", "host", "compute", "collectives", "waiting"] as const;

/** The row of a trace that a span lies on. */
export type Track = (typeof tracks)[number];

/** What is known of a span. All of it is optional; ranks are those of the world. */
export interface SpanArgs {
  /** Of a node: its operator, the scope that it was traced in, and its results, as `f32[64, 10]`. */
  readonly operator?: string;
  readonly scope?: string;
  /** The part of a step that it belongs to, see `phaseOf`. */
  readonly phase?: Phase;
  readonly shape?: string;
  /** Elements and bytes of a node's results; of a collective, those of its operand. */
  readonly elements?: number;
  readonly bytes?: number;
  /**
   * Of a collective: bytes of its result, the mesh axis, the ranks that take part, or those that a rank sends to and
   * receives from.
   */
  readonly resultBytes?: number;
  readonly axis?: string;
  readonly ranks?: readonly number[];
  readonly to?: number;
  readonly from?: number;
  readonly priority?: number;
  /** How it was carried out, by the names of docs/algorithms.md; "native" where MPI's own collective did it. */
  readonly algorithm?: string;
  /** Of a compilation: dtypes and shapes of the inputs. */
  readonly signature?: string;
  /** Of a step: milliseconds of waiting that computation did not hide. */
  readonly exposedMilliseconds?: number;
}

/** One stretch of what a rank did, in a run or in a simulation. Times are seconds since the span sink began. */
export interface Span {
  /** `op scope`, the same in run and simulation. */
  readonly name: string;
  readonly track: Track;
  readonly startSeconds: number;
  /** Not before `startSeconds`. */
  readonly endSeconds: number;
  /** May be one and the same object in many spans. */
  readonly args?: SpanArgs;
  /**
   * Spans of one cause: begun where a collective was started, through the collective itself, ended where it was waited
   * for.
   */
  readonly flow?: { readonly id: number; readonly part: "begin" | "through" | "end" };
}

/** The spans of one rank. */
export interface RankSpans {
  readonly rank: number;
  /** Host and process that it ran in, where it ran. */
  readonly process?: string | undefined;
  readonly spans: readonly Span[];
}

/** Collects spans of one rank. */
export interface SpanSink {
  /** Whether spans are wanted now: who would take trouble for them looks first. */
  readonly recording: boolean;
  /** Seconds since the span sink began. */
  now(): number;
  record(span: Span): void;
  /** A number for the `flow` of spans that belong together. */
  newFlow(): number;
}

/**
 * A span sink that keeps its spans in memory. `clock` returns milliseconds; `origin` is its time at which the span sink
 * began.
 */
export class SpanRecorder implements SpanSink {
  readonly spans: Span[] = [];
  recording = true;
  private readonly clock: () => number;
  private readonly origin: number;
  private flows = 0;

  constructor(clock: () => number = () => performance.now(), origin: number = clock()) {
    this.clock = clock;
    this.origin = origin;
  }

  now(): number {
    return (this.clock() - this.origin) / 1000;
  }

  record(span: Span): void {
    if (this.recording) this.spans.push(span);
  }

  newFlow(): number {
    return this.flows++;
  }
}

/**
 * Do some work and record it as a span, until its promise settles where it returns one. Without a sink that records,
 * only the work.
 */
export const spanned = <T>(
  spanSink: SpanSink | undefined,
  span: Pick<Span, "name" | "track" | "args">,
  work: () => T,
): T => {
  if (spanSink?.recording !== true) return work();
  const startSeconds = spanSink.now();
  const end = (): void => spanSink.record({ ...span, startSeconds, endSeconds: spanSink.now() });
  let result: T;
  try {
    result = work();
  } catch (error) {
    end();
    throw error;
  }
  if (!(result instanceof Promise)) {
    end();
    return result;
  }
  return result.finally(end) as T;
};
