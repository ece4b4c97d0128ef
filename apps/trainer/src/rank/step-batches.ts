import { batchTree, DataError, type NamedTree, type PlacedLane, positionOf, stepsPerEpoch } from "@skein/data";
import { type Prefetched, Prefetcher } from "@skein/data/node";
import { batchPartOf } from "@skein/job/node";
import { type NdArray, spanned } from "@skein/tensor-core";
import type { CutShort } from "./cut-short.ts";
import type { RankRun } from "./rank-run.ts";
import type { StepMeter } from "./step-meter.ts";

/** Batch of one step, and position of the batch in the training samples. */
export interface StepBatch {
  readonly batch: NamedTree<NdArray>;
  readonly position: Prefetched["position"];
}

/** Batches of a rank, one per step, prepared ahead by a thread. */
export class StepBatches {
  private readonly run: RankRun;
  private readonly meter: StepMeter;
  private readonly cutShort: CutShort;
  private readonly prefetcher: Prefetcher;
  /** Number of samples of a batch that this rank receives. */
  private readonly numOwnSamples: number;
  private placed: readonly PlacedLane[] | undefined;

  constructor(run: RankRun, meter: StepMeter, cutShort: CutShort) {
    const { job, rank, train, firstStep, stepOffset } = run;
    const part = batchPartOf(job, rank);
    [this.run, this.meter, this.cutShort] = [run, meter, cutShort];
    this.numOwnSamples = job.batch / part.worldSize;
    this.prefetcher = new Prefetcher(train, {
      batchSize: job.batch,
      seed: job.seed,
      ...part,
      position: positionOf(firstStep + stepOffset, stepsPerEpoch(train.count, job.batch)),
      augmentation: run.augmentation,
      lanes: run.lanes,
      damaged: (image) => run.report.damaged(image),
    });
  }

  /**
   * Positions in the training stream after the last batch, one per lane. Undefined: this rank does not know the
   * positions.
   */
  get lanes(): readonly PlacedLane[] | undefined {
    return this.placed;
  }

  /**
   * Whether the step after `done` completed steps may begin. Each step also waits for the samples of the following
   * step. If these samples are unreadable, this rank requests a stop while all ranks still run the current step, so
   * that no rank begins the following step without this rank.
   */
  async mayBegin(done: number): Promise<boolean> {
    const { totalSteps, stop, trace } = this.run;
    this.meter.begin();
    const missing = await spanned(trace?.recorder, { name: "batches ahead", track: "data" }, () =>
      this.prefetcher.ahead(Math.min(2, totalSteps - done)),
    );
    if (missing instanceof DataError) this.cutShort(missing);
    return stop.begin(done + 1);
  }

  /** Returns the next batch, and its position in the training samples. The previous batch becomes invalid. */
  async next(): Promise<StepBatch> {
    const { batch, position, cachedImages, lanes } = await spanned(
      this.run.trace?.recorder,
      { name: "next batch", track: "data" },
      () => this.prefetcher.next(),
    );
    this.placed = lanes;
    this.meter.hasBatch(cachedImages === undefined ? undefined : cachedImages / this.numOwnSamples);
    return { batch: batchTree(batch), position };
  }

  close(): Promise<void> {
    return this.prefetcher.close();
  }
}
