import type { Report } from "../messages.ts";
import type { DigitTraining } from "./digit-training.ts";
import { Rate } from "./rate.ts";

/** Maximum number of steps with pending losses. More than one, so that the device always has queued work. */
const stepsInFlight = 3;
const reportMilliseconds = 100;
const minStepsBetweenEvaluations = 20;
/** Minimum training time between two evaluations, relative to the duration of the latest evaluation. */
const trainingPerEvaluation = 4;

/** Yields to the event loop, so that messages from the page are handled. A step on the CPU never yields by itself. */
const handleMessages = (): Promise<void> => {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    const arrive = (): void => {
      port1.close();
      resolve();
    };
    port1.addEventListener("message", arrive, { once: true });
    port1.start();
    port2.postMessage(undefined);
  });
};

export interface TrainingLoopOptions {
  readonly training: DigitTraining;
  /** Function called before each step, to make another rank run the same step. */
  readonly onStep?: () => void;
  /** Number of test digits for which each evaluation computes predictions. */
  readonly shownCount: number;
  readonly bytesInUse: () => number;
  readonly report: (message: Report) => void;
}

/** Runs the steps and evaluations of one training run until the run is paused. */
export class TrainingLoop {
  private readonly options: TrainingLoopOptions;
  private readonly rate = new Rate();
  private running: Promise<void> | undefined;
  private paused = true;
  private inFlight: Promise<number>[] = [];
  /** Losses not yet reported to the page. */
  private losses: number[] = [];
  private lastReport = 0;
  /** Image for which the page has requested a prediction. Undefined: no request. */
  private picture: Uint8Array | undefined;

  constructor(options: TrainingLoopOptions) {
    this.options = options;
  }

  get isRunning(): boolean {
    return this.running !== undefined;
  }

  /** Starts training. @returns a promise that resolves when training is paused, and rejects if training fails. */
  start(): Promise<void> {
    this.paused = false;
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** Pauses training after the pending steps. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.running;
  }

  async evaluate(): Promise<void> {
    const { training, shownCount, report } = this.options;
    const accuracy = await training.accuracy();
    report({ type: "evaluated", step: training.stepCount, accuracy, readings: await training.read(shownCount) });
  }

  /**
   * Requests a prediction for an image. While training is running, the prediction is computed between two steps,
   * because a step consumes the state. Only the latest request is answered.
   */
  async read(pixels: Uint8Array): Promise<void> {
    this.picture = pixels;
    if (!this.isRunning) await this.readPicture();
  }

  private async readPicture(): Promise<void> {
    const pixels = this.picture!;
    this.picture = undefined;
    this.options.report({ type: "read", probabilities: await this.options.training.readPicture(pixels) });
  }

  private async run(): Promise<void> {
    let begin = performance.now();
    let steps = 0;
    let evaluationMilliseconds = 0;
    this.rate.resume(begin);
    this.lastReport = begin;
    while (!this.paused) {
      this.options.onStep?.();
      const { loss } = await this.options.training.step();
      this.inFlight.push(loss);
      steps++;
      if (this.inFlight.length >= stepsInFlight) await this.takeLoss();
      if (performance.now() - this.lastReport > reportMilliseconds) this.reportSteps();
      if (
        steps >= minStepsBetweenEvaluations &&
        performance.now() - begin > trainingPerEvaluation * evaluationMilliseconds
      ) {
        await this.settle();
        const evaluationBegin = performance.now();
        await this.evaluate();
        begin = performance.now();
        evaluationMilliseconds = begin - evaluationBegin;
        steps = 0;
        this.rate.resume(begin);
      }
      await handleMessages();
      if (this.picture !== undefined) {
        await this.settle();
        await this.readPicture();
        this.rate.resume(performance.now());
      }
    }
    await this.settle();
    if (this.picture !== undefined) await this.readPicture();
  }

  private async takeLoss(): Promise<void> {
    this.losses.push(await this.inFlight.shift()!);
    this.rate.step(performance.now());
  }

  /** Waits for the pending steps. */
  private async settle(): Promise<void> {
    while (this.inFlight.length > 0) await this.takeLoss();
    this.reportSteps();
  }

  private reportSteps(): void {
    const { training, bytesInUse, report } = this.options;
    this.lastReport = performance.now();
    if (this.losses.length === 0) return;
    report({
      type: "steps",
      step: training.stepCount - this.inFlight.length,
      losses: Float32Array.from(this.losses),
      stepsPerSecond: this.rate.stepsPerSecond,
      bytesInUse: bytesInUse(),
      bytesSentPerStep: training.stepCount === 0 ? 0 : training.bytesSent / training.stepCount,
    });
    this.losses = [];
  }
}
