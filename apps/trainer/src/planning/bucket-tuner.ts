import { bestTrial, type Observation, type SearchBound, suggestTrial } from "@skein/cost-model/planners";
import type { BucketsJob } from "@skein/job/node";
import { median } from "@skein/measuring";
import { millisecondsText } from "@skein/report";
import type { Agree } from "./agree.ts";

/** Result of the bucket tuner after a step: a new bucket size, or a message for the user. */
export interface Tuned {
  /** New bucket size in bytes. Absent: unchanged. */
  readonly bucketBytes: number | undefined;
  /** Message for the user, after the step that ends the search. Absent after other steps. */
  readonly remark: string | undefined;
}

/**
 * Searches during training for the bucket size with the shortest steps, by Bayesian optimization. Each size is tried
 * for several steps. The first step of a trial is not counted, because it compiles. The same number of warm-up steps
 * precedes the first trial, because the initial size would otherwise seem slow. All ranks use the times of rank 0, so
 * all ranks try the same sizes.
 *
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR), which tunes its buckets with the same method.
 */
export class BucketTuner {
  private readonly trials: Observation[] = [];
  private seconds: number[] = [];
  private bytes: number;
  private isWarm = false;
  private settled = false;
  private readonly job: BucketsJob & { readonly kind: "tuned" };
  private readonly bounds: readonly SearchBound[];
  private readonly agree: Agree;

  /**
   * Creates a tuner for the job's range of bucket sizes.
   * @param bytes Initial bucket size in bytes.
   */
  constructor(job: BucketsJob & { readonly kind: "tuned" }, bytes: number, agree: Agree) {
    this.job = job;
    this.bytes = bytes;
    this.bounds = [{ low: job.minBytes, high: job.maxBytes, scale: "log" }];
    this.agree = agree;
  }

  /**
   * Records the time of a step. Must be called on all ranks after each step.
   *
   * @returns the new bucket size or message. Undefined: no change.
   */
  async stepped(seconds: number): Promise<Tuned | undefined> {
    if (this.settled) return undefined;
    this.seconds.push(seconds);
    if (this.seconds.length < this.job.stepsEach) return undefined;
    if (!this.isWarm) {
      this.isWarm = true;
      this.seconds = [];
      return undefined;
    }
    const [agreed] = await this.agree([median(this.seconds.slice(1))]);
    this.trials.push({ point: [this.bytes], value: agreed! });
    this.seconds = [];
    this.settled = this.trials.length >= this.job.trials;
    const before = this.bytes;
    this.bytes = Math.round(
      (this.settled ? bestTrial(this.trials, this.bounds).point : suggestTrial(this.trials, this.bounds))[0]!,
    );
    return {
      bucketBytes: this.bytes === before ? undefined : this.bytes,
      remark: this.settled ? this.remark() : undefined,
    };
  }

  private remark(): string {
    const best = this.trials.find(({ point }) => point[0] === this.bytes);
    const worst = this.trials.reduce((a, b) => (b.value > a.value ? b : a));
    const show = ({ point: [bytes], value }: Observation): string =>
      `${Math.round(bytes! / 1024)} KiB, ${millisecondsText(value)} per step`;
    return `${this.trials.length} bucket sizes tried: continuing with ${best === undefined ? `${this.bytes} B` : show(best)}; the slowest was ${show(worst)}`;
  }
}
