import type { Communicator, SpanRecorder } from "@skein/tensor-core";
import type { WaitClock } from "./timed-communicator.ts";

/** Measured costs of a step. */
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
  /** Payload that this rank has sent during the step, bytes. */
  readonly bytesSent: number;
}

export interface StepMeterInput {
  readonly world: Communicator;
  /** Wait clock of `world`. */
  readonly waitClock: WaitClock;
  readonly firstStep: number;
  readonly trace?: StepTrace | undefined;
}

/** Recorder of spans, and the steps that it records. */
export interface StepTrace {
  readonly recorder: SpanRecorder;
  /** Number of first steps that have a span each. */
  readonly steps: number;
  /** Detailed recording: every `detailEvery`-th step is recorded in detail. */
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

  /** Record that the batch has arrived. @param cacheHitRate share of its images that came from the cache, 0 to 1. */
  hasBatch(cacheHitRate?: number): void {
    this.data = {
      dataSeconds: (performance.now() - this.began.milliseconds) / 1000,
      ...(cacheHitRate !== undefined && { cacheHitRate }),
    };
  }

  /** Do work between two steps without counting the work in the costs of either step. */
  async apart(work: () => Promise<void>): Promise<void> {
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
      seconds: began.seconds, // spans show the real start
      exposedSeconds: began.exposedSeconds + waitClock.seconds - waited,
      allToAllSeconds: began.allToAllSeconds + (waitClock.allToAllSeconds ?? 0) - allToAll,
      bytesSent: began.bytesSent + world.bytesSent() - sent,
    };
  }

  /** @param step that has ended. */
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
      // Not computed backward from the end: this thread may have been suspended since.
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
