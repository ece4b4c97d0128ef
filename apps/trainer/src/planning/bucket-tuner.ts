import { bestTrial, type Observation, type SearchBound, suggest, median } from "@skein/cost-model";
import type { BucketsJob } from "../job/job.ts";
import type { Agree } from "./agree.ts";

/** What a search has come to after a step. */
export interface Tuned {
  /** The size to go on with, where it is to be another. */
  readonly bucketBytes: number | undefined;
  /** What was found, for people: with the step that ends the search. */
  readonly remark: string | undefined;
}

/**
 * Searches for the bucket size with the shortest steps while training runs, by Bayesian optimisation: some steps with
 * each size, whose first is not counted, since it compiles. Before the first trial come as many steps that warm the
 * machine up; else the size that a run begins with would look slow. Ranks agree on what rank 0 has measured, so all try
 * the same sizes.
 *
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR), which tunes its buckets so.
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

  /** @param bytes of the buckets that the run begins with. */
  constructor(job: BucketsJob & { readonly kind: "tuned" }, bytes: number, agree: Agree) {
    this.job = job;
    this.bytes = bytes;
    this.bounds = [{ low: job.leastBytes, high: job.mostBytes, scale: "log" }];
    this.agree = agree;
  }

  /** Take the time of a step. All ranks call it after each. @returns what to do now, if anything. */
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
      (this.settled ? bestTrial(this.trials, this.bounds).point : suggest(this.trials, this.bounds))[0]!,
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
      `${Math.round(bytes! / 1024)} KiB, ${(value * 1000).toPrecision(3)} ms a step`;
    return `${this.trials.length} bucket sizes tried: going on with ${best === undefined ? `${this.bytes} B` : show(best)}; the slowest was ${show(worst)}`;
  }
}
