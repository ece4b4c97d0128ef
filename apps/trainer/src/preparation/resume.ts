import {
  type Checkpoint,
  differencesOf,
  type Manifest,
  rankFile,
  requireSameStream,
  requireSameTensors,
  shardFilesIn,
  sharedFile,
  stepOffsetAfter,
  wholeSpec,
} from "@skein/checkpoints/node";
import { CheckpointError } from "@skein/cli/node";
import { placeOf } from "@skein/job/node";
import {
  buildParts,
  type ExchangePlan,
  savedPlan,
  scheduleOffsetOf,
  splitLeaves,
  stateSpecs,
  totalStepsOf,
  wantedPlan,
} from "@skein/step/node";
import type { TensorSpec } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import { type Prepared, partsInputOf } from "./prepared.ts";

/**
 * Returns the specs of the complete tensors in a checkpoint, by name. Shards of a tensor are merged.
 *
 * @throws CheckpointError if the tensors of different ranks do not match.
 */
const savedSpecs = (
  { folder, tensors }: Checkpoint,
  shared: ReadonlyMap<string, TensorSpec>,
): Map<string, TensorSpec> =>
  new Map([
    ...shared,
    ...shardFilesIn(tensors).flatMap(({ cuts, names }) =>
      [...tensors.get(names[0]!)!].map(([path, part]) => {
        const other = names.find((name) => !isSameSpec(tensors.get(name)?.get(path), part));
        const dims = cuts.map(({ dim }) => dim);
        if (other !== undefined || dims.some((dim) => part.shape[dim] === undefined))
          throw new CheckpointError(
            `${folder}: ${path} in ${other ?? names[0]} does not match the part along dimension ${dims.join(" and ")} in ${names[0]}, ${formatSpec(part)}; resume from another run`,
          );
        return [path, wholeSpec(part, cuts)] as const;
      }),
    ),
  ]);

const isSameSpec = (one: TensorSpec | undefined, other: TensorSpec): boolean =>
  one !== undefined && sameSpec(one, other);

/**
 * Returns the prepared job with the sample position and the last step of a run that resumes from a checkpoint. If the
 * job sets `epochs`, the last step depends on the number of processed samples. If the job sets `steps`, the last step
 * is the total number of completed steps. Without a checkpoint, returns the job of a new run.
 */
export const resumedAt = (prepared: Prepared, manifest: Manifest | undefined): Prepared => {
  const { job, stepsPerEpoch: perEpoch } = prepared;
  const stepOffset =
    manifest === undefined
      ? 0
      : stepOffsetAfter(manifest.data, manifest.step, { batch: job.batch, stepsPerEpoch: perEpoch });
  return {
    ...prepared,
    stepOffset,
    totalSteps: Math.max(manifest?.step ?? 0, totalStepsOf(job, perEpoch) - scheduleOffsetOf(job, stepOffset)),
  };
};

/** Returns the specs of the tensors that each rank owns, by rank. The tensors can depend on the plan of the run. */
const ownSpecs = (prepared: Prepared, plan: ExchangePlan | undefined): ReadonlyMap<string, TensorSpec>[] => {
  const parts = buildParts(partsInputOf(prepared, plan), plan);
  return Array.from(
    { length: prepared.job.ranks },
    (_, rank) => splitLeaves(stateSpecs(parts, placeOf(prepared.job, rank)), parts).own,
  );
};

/**
 * Checks that a run can resume from a checkpoint.
 *
 * @returns remarks for the user: differences from an uninterrupted run.
 * @throws CheckpointError if the model differs, or if the number of ranks differs and ranks own state.
 */
export const checkResumable = (prepared: Prepared, checkpoint: Checkpoint): string[] => {
  const { manifest, tensors, folder } = checkpoint;
  requireSameStream(manifest.data, prepared, folder);
  const { job, whole, jobHash } = prepared;
  const saved = tensors.get(sharedFile);
  if (saved === undefined) throw new CheckpointError(`${folder} has no ${sharedFile}; resume from another run`);
  requireSameTensors(savedSpecs(checkpoint, saved), whole, folder);
  const hasOwn = prepared.ownLeaves.size > 0 || [...tensors.keys()].some((name) => name.startsWith("rank-"));
  if (hasOwn && manifest.worldSize !== job.ranks) {
    throw new CheckpointError(
      `${folder} was written by ${manifest.worldSize} ranks, each with its own state (residuals or inverses), but the job has ${job.ranks}; resume with ${manifest.worldSize} ranks`,
    );
  }
  if (hasOwn)
    for (const [rank, own] of ownSpecs(prepared, wantedPlan(job, savedPlan(checkpoint))).entries())
      requireSameTensors(tensors.get(rankFile(rank)) ?? new Map(), own, `${folder} (rank ${rank})`);
  return manifest.jobHash === jobHash
    ? []
    : [
        `the job differs from the one that wrote the checkpoint${differencesOf(manifest.job, prepared.jobSettings)}: this run will not equal an uninterrupted one`,
      ];
};
