import type { Phase } from "./graph/graph.ts";

/**
 * Tracks of a rank's trace, one per kind of activity, in display order. Activities on different tracks may overlap.
 *
 * | track | its spans |
 * | --- | --- |
 * | steps | one per training step, from the request for a batch until the loss is known |
 * | data | getting a batch |
 * | host | work of the rank's own thread: tracing, compiling, starting collectives, saving |
 * | compute | kernels; on WebGPU by the device's clock |
 * | collectives | one per collective, from its start until its result is available; several may overlap |
 * | waiting | one per wait for a collective: communication that computation did not hide |
 */
export const tracks = ["steps", "data", "host", "compute", "collectives", "waiting"] as const;

/** Row of a trace that a span is shown in. */
export type Track = (typeof tracks)[number];

/** Attributes of a span. All are optional; ranks are world ranks. */
export interface SpanArgs {
  /** For a node: its operator, the scope that it was traced in, and the specs of its results, such as `f32[64, 10]`. */
  readonly operator?: string;
  readonly scope?: string;
  /** Phase of the step, see `phaseOf`. */
  readonly phase?: Phase;
  readonly shape?: string;
  /** Elements and bytes of a node's results; for a collective, of its operand. */
  readonly elements?: number;
  readonly bytes?: number;
  /**
   * For a collective: bytes of its result, the mesh axis, the participating ranks, or the ranks that a rank sends to
   * and receives from.
   */
  readonly resultBytes?: number;
  readonly axis?: string;
  readonly ranks?: readonly number[];
  readonly to?: number;
  readonly from?: number;
  readonly priority?: number;
  /** Algorithm of a collective, by the names of docs/algorithms.md; "native" for MPI's own collective. */
  readonly algorithm?: string;
  /** For a compilation: dtypes and shapes of the inputs. */
  readonly signature?: string;
  /** For a step: waiting time that computation did not hide, milliseconds. */
  readonly exposedMilliseconds?: number;
}

/**
 * One interval of a rank's activity, in a run or in a simulation. Times are seconds since the start of the span sink.
 */
export interface Span {
  /** `op scope`, the same in a run and in a simulation. */
  readonly name: string;
  readonly track: Track;
  readonly startSeconds: number;
  /** At or after `startSeconds`. */
  readonly endSeconds: number;
  /** May be the same object in many spans. */
  readonly args?: SpanArgs;
  /**
   * Links spans of one collective: "begin" on the span that starts the collective, "through" on the collective itself,
   * "end" on the span that waits for it.
   */
  readonly flow?: { readonly id: number; readonly part: "begin" | "through" | "end" };
}

/** Spans of one rank. */
export interface RankSpans {
  readonly rank: number;
  /** Host and process of the rank, if it ran in a process. */
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
 * Run `work` and record it as a span, which ends when a returned promise settles. Without a recording sink, only runs
 * `work`.
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
