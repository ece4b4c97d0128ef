import type { Report } from "../messages.ts";
import type { DigitTraining } from "./digit-training.ts";
import { Rate } from "./rate.ts";

/** Steps whose loss may still be on its way, so that the device always has the next one to do. */
const stepsInFlight = 3;
const reportMilliseconds = 100;
const minStepsBetweenEvaluations = 20;
/** Between evaluations training takes at least this many times as long as the last evaluation did. */
const trainingPerEvaluation = 4;

/** Let messages from the page in: a step on the processor never waits, so nothing else would. */
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
  /** Told before each step: another rank does the same one. */
  readonly onStep?: () => void;
  /** How many test digits are read at each evaluation. */
  readonly shownCount: number;
  readonly bytesInUse: () => number;
  readonly report: (message: Report) => void;
}

/** Steps and evaluations of one training, one after another, until paused. */
export class TrainingLoop {
  private readonly options: TrainingLoopOptions;
  private readonly rate = new Rate();
  private running: Promise<void> | undefined;
  private paused = true;
  private inFlight: Promise<number>[] = [];
  /** Losses that were not yet reported. */
  private losses: number[] = [];
  private lastReport = 0;
  /** A picture that the page wants to have read. */
  private picture: Uint8Array | undefined;

  constructor(options: TrainingLoopOptions) {
    this.options = options;
  }

  get isRunning(): boolean {
    return this.running !== undefined;
  }

  /** Train from here on. @returns when training stands still again; rejects with what went wrong. */
  start(): Promise<void> {
    this.paused = false;
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** Bring training to a standstill after the steps that are under way. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.running;
  }

  async evaluate(): Promise<void> {
    const { training, shownCount, report } = this.options;
    const accuracy = await training.accuracy();
    report({ type: "evaluated", step: training.stepCount, accuracy, readings: await training.read(shownCount) });
  }

  /** Read a picture: between two steps while training goes on, which gives the state away. The newest one counts. */
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

  /** Wait for the steps that are under way. */
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
