import { isStreamed, type LanePosition, numLanesOf, type PlacedLane, positionOf } from "@skein/data";
import { InvariantError } from "@skein/tensor-core";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import type { TrainingData } from "../modules/task.ts";

/** Where a run stands in its data. */
export type DataStanding =
  /** Epochs done, and steps done of the next. */
  | { readonly epoch: number; readonly step: number; readonly stepsPerEpoch: number }
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
  z.strictObject({ epoch: count, step: count, stepsPerEpoch: z.int().min(1) }),
  z.strictObject({ step: count, lanes: z.array(lane).min(1), digest: z.string().regex(/^[0-9a-f]{64}$/) }),
]);

/** What of it cannot be after so many steps, if anything. */
export const standingFault = (data: DataStanding, step: number): string | undefined => {
  if (!("lanes" in data))
    return data.step < data.stepsPerEpoch && data.epoch * data.stepsPerEpoch + data.step === step
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
  { data, stepsPerEpoch }: { readonly data: Pick<TrainingData, "train">; readonly stepsPerEpoch: number },
  placed: readonly PlacedLane[],
): DataStanding => {
  if (!isStreamed(data.train)) return { ...positionOf(step, stepsPerEpoch), stepsPerEpoch };
  const lanes: LanePosition[] = [];
  for (const { lane: number, position } of placed) lanes[number] = position;
  if (lanes.length === 0 || lanes.includes(undefined as never))
    throw new InvariantError(`of ${lanes.length} lanes of a stream nobody reads some`);
  return { step, lanes, digest: data.train.stream.digest };
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
