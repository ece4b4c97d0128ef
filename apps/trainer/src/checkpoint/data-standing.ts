import { isStreamed, type LanePosition, numLanesOf, type PlacedLane, positionOf } from "@skein/data";
import { InvariantError } from "@skein/tensor-core";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import type { TrainingData } from "../task/task.ts";

/** Where a run stands in its data. */
export type DataStanding =
  /**
   * Epochs done, and steps done of the next one. Batch: samples of a step; absent in older checkpoints. Offset: steps
   * that the samples seen are at this batch, less the steps done; other than 0 once the batch of a run has changed.
   */
  | {
      readonly epoch: number;
      readonly step: number;
      readonly stepsPerEpoch: number;
      readonly batch?: number | undefined;
      readonly offset?: number | undefined;
    }
  /** Of a stream: steps done, where each lane stands, and the digest of what it reads. */
  | { readonly step: number; readonly lanes: readonly LanePosition[]; readonly digest: string };

const count = z.int().min(0);

const lane: z.ZodType<LanePosition> = z.strictObject({
  shard: count,
  offset: count,
  skip: count,
  block: count,
  size: z.int().min(1),
  drawn: count,
});

export const dataStandingSchema: z.ZodType<DataStanding> = z.union([
  z.strictObject({
    epoch: count,
    step: count,
    stepsPerEpoch: z.int().min(1),
    batch: z.int().min(1).optional(),
    offset: z.int().optional(),
  }),
  z.strictObject({ step: count, lanes: z.array(lane).min(1), digest: z.string().regex(/^[0-9a-f]{64}$/) }),
]);

/** What of it cannot be after so many steps, if anything. */
export const standingFault = (data: DataStanding, step: number): string | undefined => {
  if (!("lanes" in data))
    return data.step < data.stepsPerEpoch && data.epoch * data.stepsPerEpoch + data.step === step + (data.offset ?? 0)
      ? undefined
      : `says step ${step}, but also epoch ${data.epoch} and step ${data.step} of ${data.stepsPerEpoch}, which is another`;
  if (data.step !== step) return `says step ${step}, but also step ${data.step} of its stream, which is another`;
  const over = data.lanes.find(({ drawn, size }) => drawn > size);
  return over && `says that ${over.drawn} samples of a block of ${over.size} were drawn`;
};

/**
 * Where a run stands in its data after a step.
 *
 * @param placed what ranks say of the lanes of a stream that they read; those that read one lane say the same of it.
 */
export const standingOf = (
  step: number,
  {
    job: { batch },
    data,
    stepsPerEpoch,
    stepOffset,
  }: {
    readonly stepsPerEpoch: number;
    /** See `stepOffsetAfter`. */
    readonly stepOffset: number;
    readonly job: Pick<Job, "batch">;
    readonly data: Pick<TrainingData, "train">;
  },
  placed: readonly PlacedLane[],
): DataStanding => {
  if (!isStreamed(data.train))
    return {
      ...positionOf(step + stepOffset, stepsPerEpoch),
      stepsPerEpoch,
      batch,
      ...(stepOffset !== 0 && { offset: stepOffset }),
    };
  const lanes: LanePosition[] = [];
  for (const { lane: number, position } of placed) lanes[number] = position;
  if (lanes.length === 0 || lanes.includes(undefined as never))
    throw new InvariantError(`of ${lanes.length} lanes of a stream nobody reads some`);
  return { step, lanes, digest: data.train.stream.digest };
};

/**
 * Steps that the samples seen before a checkpoint are at the batch of a job, less the steps done: 0 while the batch and
 * the samples stay the same. A batch that was begun counts as not seen, so that no sample is left out.
 */
export const stepOffsetAfter = (
  data: DataStanding,
  doneSteps: number,
  { batch, stepsPerEpoch }: { readonly batch: number; readonly stepsPerEpoch: number },
): number => {
  if ("lanes" in data) return 0; // lanes say where they stand
  const { batch: before = batch, offset = 0 } = data;
  if (before === batch && data.stepsPerEpoch === stepsPerEpoch) return offset;
  const ofEpoch = Math.min(stepsPerEpoch, Math.floor((data.step * before) / batch));
  return data.epoch * stepsPerEpoch + ofEpoch - doneSteps;
};

/** @throws CheckpointError where the job cannot go on in its data where the checkpoint stands. */
export const requireSameStream = (
  said: DataStanding,
  { job, data }: { readonly job: Job; readonly data: Pick<TrainingData, "train"> },
  folder: string,
): void => {
  const stream = isStreamed(data.train) ? data.train.stream : undefined;
  const standing = "lanes" in said ? said : undefined;
  if (standing === undefined && stream === undefined) return;
  const refuse = (what: string): never => {
    throw new CheckpointError(`${folder} ${what}`);
  };
  if (standing === undefined || stream === undefined)
    return refuse(
      `was written by a run ${standing === undefined ? "that knew all of its samples" : "of a stream"}, but the job has ${stream === undefined ? "no data.stream" : "data.stream"}; resume with the job that wrote it`,
    );
  if (standing.digest !== stream.digest)
    refuse(
      "stands in the middle of files that are not those that the job names now, by their names and sizes; name the same ones, or begin a new run",
    );
  const { length } = standing.lanes;
  if (stream.shardsAtOnce !== undefined && numLanesOf(stream, { batchSize: job.batch, worldSize: 1 }) !== length)
    refuse(
      `stands in ${length} files at once, but data.stream.shardsAtOnce is ${stream.shardsAtOnce}; set it to ${length}, or leave it out`,
    );
  if (job.batch % length !== 0)
    refuse(
      `stands in ${length} files at once, which cannot give equal parts of a batch of ${job.batch}; use a multiple of ${length}`,
    );
};
