import type { Communicator, SpanRecorder } from "@skein/tensor-core";
import type { WaitClock } from "./timed-communicator.ts";

/** Measured costs of one step: duration, waits, image cache hits and sent bytes. */
export interface StepCosts {
  readonly seconds: number;
  /** Part of `seconds` spent waiting for collectives. */
  readonly exposedSeconds: number;
  /** Part of `exposedSeconds` spent waiting for all-to-alls. Absent: steps have no all-to-alls. */
  readonly exposedAllToAllSeconds?: number;
  /** Part of `seconds` spent waiting for a batch. */
  readonly dataSeconds: number;
  /** Share of the batch's images that came from the cache, 0 to 1. Absent: no cache. */
  readonly cacheHitRate?: number;
  /** Payload bytes sent by this rank during the step. */
  readonly bytesSent: number;
}

export interface StepMeterInput {
  readonly world: Communicator;
  /** Time spent waiting for collectives of `world`. */
  readonly waitClock: WaitClock;
  readonly firstStep: number;
  readonly trace?: StepTrace | undefined;
}

/** Recorder of a rank's spans, with the selection of steps to record. */
export interface StepTrace {
  readonly recorder: SpanRecorder;
  /** Number of first steps for which a span is recorded. */
  readonly steps: number;
  /** Interval, in steps, between steps that are recorded in detail. */
  readonly detailEvery: number;
}

/**
 * Measures each step of a rank, from the request for a batch until the loss is known, and decides which steps are
 * traced.
 */
export class StepMeter {
  private readonly input: StepMeterInput;
  private data: Pick<StepCosts, "dataSeconds" | "cacheHitRate"> = { dataSeconds: 0 };
  private began = { milliseconds: 0, seconds: 0, exposedSeconds: 0, allToAllSeconds: 0, bytesSent: 0 };

  constructor(input: StepMeterInput) {
    this.input = input;
  }

  begin(): void {
    const { world, waitClock, trace } = this.input;
    this.began = {
      milliseconds: performance.now(),
      seconds: trace?.recorder.now() ?? 0,
      exposedSeconds: waitClock.seconds,
      allToAllSeconds: waitClock.allToAllSeconds ?? 0,
      bytesSent: world.bytesSent(),
    };
  }

  /** Records the arrival of the batch. @param cacheHitRate Share of images that came from the cache, 0 to 1. */
  hasBatch(cacheHitRate?: number): void {
    this.data = {
      dataSeconds: (performance.now() - this.began.milliseconds) / 1000,
      ...(cacheHitRate !== undefined && { cacheHitRate }),
    };
  }

  /**
   * Runs work between two steps. The time, the waits and the sent bytes of the work are excluded from the costs of both
   * steps.
   */
  async exclude(work: () => Promise<void>): Promise<void> {
    const { waitClock, world } = this.input;
    const [milliseconds, waited, allToAll, sent] = [
      performance.now(),
      waitClock.seconds,
      waitClock.allToAllSeconds ?? 0,
      world.bytesSent(),
    ];
    await work();
    const { began } = this;
    this.began = {
      milliseconds: began.milliseconds + performance.now() - milliseconds,
      seconds: began.seconds, // the span shows the actual start
      exposedSeconds: began.exposedSeconds + waitClock.seconds - waited,
      allToAllSeconds: began.allToAllSeconds + (waitClock.allToAllSeconds ?? 0) - allToAll,
      bytesSent: began.bytesSent + world.bytesSent() - sent,
    };
  }

  /** Ends the measurement of a step. @param step The step that has ended. */
  end(step: number): StepCosts {
    const { world, waitClock, trace, firstStep } = this.input;
    const costs = {
      seconds: (performance.now() - this.began.milliseconds) / 1000,
      exposedSeconds: waitClock.seconds - this.began.exposedSeconds,
      ...(waitClock.allToAllSeconds !== undefined && {
        exposedAllToAllSeconds: waitClock.allToAllSeconds - this.began.allToAllSeconds,
      }),
      ...this.data,
      bytesSent: world.bytesSent() - this.began.bytesSent,
    };
    if (trace !== undefined) {
      const { recorder, steps, detailEvery } = trace;
      const endSeconds = recorder.now();
      const args = { exposedMilliseconds: 1000 * costs.exposedSeconds };
      // The start is not computed from end and duration, because this thread may have been suspended in between.
      const span = {
        name: `step ${step}`,
        track: "steps",
        startSeconds: this.began.seconds,
        endSeconds,
        args,
      } as const;
      if (step <= firstStep + steps) recorder.spans.push(span);
      recorder.recording = step < firstStep + steps && (step - firstStep) % detailEvery === 0;
    }
    return costs;
  }
}
