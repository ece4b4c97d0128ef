import type { Phase } from "./graph/graph.ts";

/**
 * Tracks of a rank's trace, one per kind of activity, in display order. Activities on different tracks may overlap.
 *
 * | track | spans |
 * | --- | --- |
 * | steps | one per training step, from the batch request until the loss is known |
 * | data | getting a batch |
 * | host | work of the rank's own thread: tracing, compiling, starting collectives, saving |
 * | compute | kernels; on WebGPU by the device's clock |
 * | collectives | one per collective, from its start until its result is available; several may overlap |
 * | waiting | one per wait for a collective: communication time not hidden by computation |
 */
export const tracks = ["steps", "data", "host", "compute", "collectives", "waiting"] as const;

/** Track of a trace in which a span is displayed. */
export type Track = (typeof tracks)[number];

/** Attributes of a span. All are optional; ranks are world ranks. */
export interface SpanArgs {
  /**
   * Operator of a node. `scope`: scope of the node in the model. `shape`: specs of the node's results, such as `f32[64,
   * 10]`.
   */
  readonly operator?: string;
  readonly scope?: string;
  /** Phase of the training step, see `phaseOf`. */
  readonly phase?: Phase;
  readonly shape?: string;
  /** Number of elements in a node's results or in a collective's operand; `bytes`: size of these elements in bytes. */
  readonly elements?: number;
  readonly bytes?: number;
  /**
   * Bytes of a collective's result. `axis`: mesh axis. `ranks`: participating ranks. `to`, `from`: ranks that this rank
   * sends to and receives from.
   */
  readonly resultBytes?: number;
  readonly axis?: string;
  readonly ranks?: readonly number[];
  readonly to?: number;
  readonly from?: number;
  readonly priority?: number;
  /** Algorithm of a collective, named as in docs/algorithms.md; "native" for a collective of the MPI library. */
  readonly algorithm?: string;
  /** Dtypes and shapes of the inputs of a compilation. */
  readonly signature?: string;
  /** Communication time of a step that computation did not hide, milliseconds. */
  readonly exposedMilliseconds?: number;
}

/**
 * One interval of a rank's activity, in a run or in a simulation. Times are seconds since the start of the span sink.
 */
export interface Span {
  /** Operator and scope, `op scope`. Equal in a run and in a simulation. */
  readonly name: string;
  readonly track: Track;
  readonly startSeconds: number;
  /** End time in seconds, at least `startSeconds`. */
  readonly endSeconds: number;
  /** Attributes of the span. Several spans may share one object. */
  readonly args?: SpanArgs;
  /**
   * Link between the spans of one collective. `part` is "begin" for the span that starts the collective, "through" for
   * the collective itself, and "end" for the span that waits for the collective.
   */
  readonly flow?: { readonly id: number; readonly part: "begin" | "through" | "end" };
}

/** Spans of one rank. */
export interface RankSpans {
  readonly rank: number;
  /** Host name and process id of the rank, as `host:pid`. Absent: unknown. */
  readonly process?: string | undefined;
  readonly spans: readonly Span[];
}

/** Collects spans of one rank. */
export interface SpanSink {
  /** Whether spans are recorded now. Check before costly preparation of a span. */
  readonly recording: boolean;
  /** Seconds since the start of the span sink. */
  now(): number;
  record(span: Span): void;
  /** New id for the `flow` of related spans. */
  newFlow(): number;
}

/**
 * A span sink that keeps its spans in memory. `clock` returns milliseconds; `origin` is the clock's time at the start
 * of the span sink.
 *
 * @example
 * ```ts
 * const recorder = new SpanRecorder();
 * spanned(recorder, { name: "load", track: "data" }, () => {});
 * console.log(recorder.spans.map(({ name, track }) => `${name} on ${track}`)); // ['load on data']
 * ```
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
 * Runs `work` and records a span of its duration. If `work` returns a promise, the span ends when the promise settles.
 * If the sink is absent or not recording, only runs `work`.
 *
 * @example
 * ```ts
 * const recorder = new SpanRecorder();
 * console.log(spanned(recorder, { name: "load", track: "data" }, () => 3)); // 3
 * ```
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
