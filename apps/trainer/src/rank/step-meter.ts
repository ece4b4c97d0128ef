import type { Communicator, SpanRecorder } from "@skein/tensor-core";
import type { WaitClock } from "./timed-communicator.ts";

/** What a step took. */
export interface StepCosts {
  readonly seconds: number;
  /** Of those, spent waiting for collectives. */
  readonly exposedSeconds: number;
  /** Of those, for all-to-alls; where steps have them. */
  readonly exposedAllToAllSeconds?: number;
  /** Of `seconds`, spent waiting for a batch. */
  readonly dataSeconds: number;
  /** Part of the batch's images that came from the cache; where there is one. */
  readonly cacheHitRate?: number;
  /** Payload that this rank has sent during the step. */
  readonly bytesSent: number;
}

export interface StepMeterInput {
  readonly world: Communicator;
  /** Of that communicator. */
  readonly waitClock: WaitClock;
  readonly firstStep: number;
  readonly trace?: StepTrace | undefined;
}

/** Where spans go, and of which steps. */
export interface StepTrace {
  readonly recorder: SpanRecorder;
  /** The first steps, so many, have a span each. */
  readonly steps: number;
  /** Of so many of these, one is recorded in detail. */
  readonly detailEvery: number;
}

/**
 * Measures each step of a rank from the wish for a batch until the loss is known, and settles which steps are traced.
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

  /** What the step learns from is here. @param cacheHitRate part of its images that came from the cache. */
  hasBatch(cacheHitRate?: number): void {
    this.data = {
      dataSeconds: (performance.now() - this.began.milliseconds) / 1000,
      ...(cacheHitRate !== undefined && { cacheHitRate }),
    };
  }

  /** Do something between two steps that neither of them is charged with. */
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
      seconds: began.seconds, // spans tell what was
      exposedSeconds: began.exposedSeconds + waitClock.seconds - waited,
      allToAllSeconds: began.allToAllSeconds + (waitClock.allToAllSeconds ?? 0) - allToAll,
      bytesSent: began.bytesSent + world.bytesSent() - sent,
    };
  }

  /** @param step that is done now. */
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
      // Not counted back from the end: this thread may have been put aside since.
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
