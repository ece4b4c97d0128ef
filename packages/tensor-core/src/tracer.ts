/** One stretch of work, in a run or in a simulation. Times are seconds since the tracer began. */
export interface Span {
  /** `op scope`, the same in run and simulation. */
  readonly name: string;
  readonly category: "compute" | "communication" | "data" | "other";
  readonly rank: number;
  /** Track within the rank: "compute", "communication", "data". */
  readonly stream: string;
  readonly startSeconds: number;
  readonly durationSeconds: number;
  readonly args?: { readonly [key: string]: string | number };
}

/** Collects spans. */
export interface Tracer {
  /** Seconds since the tracer began. */
  now(): number;
  record(span: Span): void;
}

/** A tracer that keeps its spans in memory. `clock` returns milliseconds. */
export class SpanRecorder implements Tracer {
  readonly spans: Span[] = [];
  private readonly clock: () => number;
  private readonly origin: number;

  constructor(clock: () => number = () => performance.now(), origin: number = clock()) {
    this.clock = clock;
    this.origin = origin;
  }

  now(): number {
    return (this.clock() - this.origin) / 1000;
  }

  record(span: Span): void {
    this.spans.push(span);
  }
}
