import { CheckpointError } from "@skein/cli/node";
import {
  isStreamed,
  type LanePosition,
  numLanesOf,
  type PlacedLane,
  positionOf,
  type TrainingSamples,
} from "@skein/data";
import { InvariantError } from "@skein/tensor-core";
import { z } from "zod";

/** Position of a run in its data. */
export type DataPosition =
  /**
   * `epoch`: number of completed epochs. `step`: number of completed steps of the next epoch. `batch`: samples per
   * step; absent in older checkpoints. `offset`: data position in steps of this batch size,
   * `epoch × stepsPerEpoch + step`, minus the number of completed steps of the run. The offset is 0 unless the batch
   * size or the samples of a run have changed.
   */
  | {
      readonly epoch: number;
      readonly step: number;
      readonly stepsPerEpoch: number;
      readonly batch?: number | undefined;
      readonly offset?: number | undefined;
    }
  /**
   * Position in a stream: number of completed steps, position in each lane (part of the stream that is read
   * independently), and digest of the stream's files.
   */
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

export const dataPositionSchema: z.ZodType<DataPosition> = z.union([
  z.strictObject({
    epoch: count,
    step: count,
    stepsPerEpoch: z.int().min(1),
    batch: z.int().min(1).optional(),
    offset: z.int().optional(),
  }),
  z.strictObject({ step: count, lanes: z.array(lane).min(1), digest: z.string().regex(/^[0-9a-f]{64}$/) }),
]);

/**
 * Returns a description of the contradiction if `data` cannot be the position of a run after `step` steps. Undefined:
 * the position is possible.
 */
export const positionFault = (data: DataPosition, step: number): string | undefined => {
  if (!("lanes" in data))
    return data.step < data.stepsPerEpoch && data.epoch * data.stepsPerEpoch + data.step === step + (data.offset ?? 0)
      ? undefined
      : `says step ${step}, but also epoch ${data.epoch} and step ${data.step} of ${data.stepsPerEpoch}, which does not match`;
  if (data.step !== step) return `says step ${step}, but also step ${data.step} of its stream, which does not match`;
  const over = data.lanes.find(({ drawn, size }) => drawn > size);
  return over && `says that ${over.drawn} samples of a block of ${over.size} were drawn`;
};

/**
 * Returns the position of a run in its data after a step.
 *
 * @param placed positions in the stream lanes, as reported by the ranks that read each lane. Ranks that read the same
 * lane report the same position.
 */
export const dataPositionOf = (
  step: number,
  {
    job: { batch },
    data,
    stepsPerEpoch,
    stepOffset,
  }: {
    readonly stepsPerEpoch: number;
    /**
     * Offset of the data position in steps: data position minus the number of completed steps, see `stepOffsetAfter`.
     */
    readonly stepOffset: number;
    readonly job: { readonly batch: number };
    readonly data: { readonly train: TrainingSamples };
  },
  placed: readonly PlacedLane[],
): DataPosition => {
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
    throw new InvariantError(`some of ${lanes.length} lanes of a stream are not read by any rank`);
  return { step, lanes, digest: data.train.stream.digest };
};

/**
 * Returns the data position of a checkpoint in steps of the job's batch size, minus the number of completed steps. 0 if
 * the batch size and the samples have never changed. A partially consumed batch is not counted, so that no sample is
 * skipped.
 */
export const stepOffsetAfter = (
  data: DataPosition,
  doneSteps: number,
  { batch, stepsPerEpoch }: { readonly batch: number; readonly stepsPerEpoch: number },
): number => {
  if ("lanes" in data) return 0; // stream lanes store their own positions
  const { batch: before = batch, offset = 0 } = data;
  if (before === batch && data.stepsPerEpoch === stepsPerEpoch) return offset;
  const stepsInEpoch = Math.min(stepsPerEpoch, Math.floor((data.step * before) / batch));
  return data.epoch * stepsPerEpoch + stepsInEpoch - doneSteps;
};

/** Requires that the job can continue at the checkpoint's position in its data. @throws CheckpointError. */
export const requireSameStream = (
  position: DataPosition,
  { job, data }: { readonly job: { readonly batch: number }; readonly data: { readonly train: TrainingSamples } },
  folder: string,
): void => {
  const stream = isStreamed(data.train) ? data.train.stream : undefined;
  const streamPosition = "lanes" in position ? position : undefined;
  if (streamPosition === undefined && stream === undefined) return;
  const reject = (reason: string): never => {
    throw new CheckpointError(`${folder} ${reason}`);
  };
  if (streamPosition === undefined || stream === undefined)
    return reject(
      `was written by a run ${streamPosition === undefined ? "without data.stream" : "with data.stream"}, but the job has ${stream === undefined ? "no data.stream" : "data.stream"}; resume with the job that wrote it`,
    );
  if (streamPosition.digest !== stream.digest)
    reject(
      "has a position in files other than those that the job names now, judged by names and sizes; name the same files, or start a new run",
    );
  const { length } = streamPosition.lanes;
  if (stream.shardsAtOnce !== undefined && numLanesOf(stream, { batchSize: job.batch, worldSize: 1 }) !== length)
    reject(
      `has positions in ${length} files, but data.stream.shardsAtOnce is ${stream.shardsAtOnce}; set shardsAtOnce to ${length}, or leave it out`,
    );
  if (job.batch % length !== 0)
    reject(
      `has positions in ${length} files, which cannot provide equal parts of a batch of ${job.batch}; use a multiple of ${length}`,
    );
};
