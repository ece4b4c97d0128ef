import { bucketPerTensor, bucketsOf, identityCompressor } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { gatherBatch, type Records, trainingBatches } from "@skein/data";
import {
  type Backend,
  type Communicators,
  type DeviceArray,
  flattenTree,
  InvariantError,
  jit,
  leafPaths,
  randomKey,
  type Span,
  SpanRecorder,
} from "@skein/tensor-core";
import { CompiledSteps } from "../compiled-steps.ts";
import type { Job } from "../job.ts";
import { median } from "../median.ts";
import { placeOf } from "../mesh.ts";
import { type DeviceState, initState, type Parts } from "../train-state.ts";

/** Steps before times are believed: the first compiles, the second meets cold caches. */
const warmUpSteps = 2;

export interface ProfileInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  readonly rank: number;
  readonly train: Records;
}

/**
 * When the collective of each bucket was started in one step, in seconds after the loss of all ranks was asked for: the
 * end of the forward pass.
 */
const startsOf = (spans: readonly Span[], numBuckets: number): readonly number[] => {
  const begun = spans.filter(({ track }) => track === "collectives");
  const startOf = (what: string, is: (name: string) => boolean): number => {
    const found = begun.find(({ name }) => is(name));
    if (found === undefined)
      throw new InvariantError(`the backend recorded no collective of ${what} among ${begun.length}`);
    return found.startSeconds;
  };
  const loss = startOf("the loss", (name) => !name.includes("exchange-"));
  return Array.from({ length: numBuckets }, (_, i) =>
    Math.max(0, startOf(`bucket ${i}`, (name) => name.endsWith(` exchange-${i}`)) - loss),
  );
};

/**
 * Time a few steps of a job on a copy of its state, with a dense exchange of each tensor by itself, and tell when each
 * gradient is ready. All ranks call it together; their figures differ.
 *
 * @returns tensors in the order in which their gradients become ready; bytes are dense. On WebGPU a gradient is ready
 * when it has been read back.
 */
export const measureProfile = async ({
  job,
  parts,
  backend,
  communicators,
  rank,
  train,
}: ProfileInput): Promise<GradientProfile> => {
  const identity = identityCompressor();
  const initial = jit(initState(parts), backend, { mesh: parts.mesh, place: placeOf(job, rank) });
  const fresh = (await initial(randomKey(job.seed) as never)) as unknown as DeviceState;
  initial.release();
  const plan = bucketPerTensor(fresh.params);
  // Lanes in turn: a lane has room for 64 requests, and whoever finds it full waits, which would be taken for
  // computation.
  const dense: Parts = {
    ...parts,
    overlap: "wait-free",
    buckets: plan,
    priorities: plan.map((_, i) => i % 4),
    compressorAt: () => identity as never,
  };
  for (const leaf of flattenTree<DeviceArray>([fresh.residuals, fresh.pending, fresh.due]).leaves) backend.free(leaf);
  let state: DeviceState = { ...fresh, residuals: plan.map(() => []), pending: [], due: [] };
  const spanSink = new SpanRecorder();
  const steps = new CompiledSteps({
    job: { ...job, overlap: "wait-free" },
    parts: dense,
    backend,
    communicators,
    spanSink,
  });
  const starts: (readonly number[])[] = [];
  const numSteps = warmUpSteps + (job.buckets.kind === "mg-wfbp" ? job.buckets.profileSteps : 10);
  const batches = trainingBatches(train.count, { batchSize: job.batch, seed: job.seed, rank, worldSize: job.ranks });
  for (let step = 0; step < numSteps; step++) {
    const { indices } = batches.next().value;
    const begin = spanSink.spans.length;
    const result = await steps.run(step, state, gatherBatch(train, indices));
    state = result.state;
    for (const array of [result.loss, result.finite, result.skipped, result.update]) backend.free(array);
    if (step >= warmUpSteps) starts.push(startsOf(spanSink.spans.slice(begin), plan.length));
  }
  steps.release();
  for (const leaf of flattenTree<DeviceArray>(state).leaves) backend.free(leaf);

  const ready = plan.map((_, i) => median(starts.map((one) => one[i]!)));
  const tensors = bucketsOf(state.params, plan)
    .map(({ tensors: [tensor], shape }, i) => ({ path: tensor!.path, bytes: 4 * shape[0]!, ready: ready[i]! }))
    .sort((a, b) => a.ready - b.ready);
  return {
    tensors: tensors.map(({ path, bytes, ready: at }, i) => ({
      path,
      bytes,
      backwardSeconds: at - (tensors[i - 1]?.ready ?? 0),
    })),
  };
};

/** Paths of a profile as numbers, so that ranks may agree upon it. */
export const profileNumbers = (profile: GradientProfile, params: unknown): number[] => {
  const paths = leafPaths(params);
  return profile.tensors.flatMap(({ path, bytes, backwardSeconds }) => [paths.indexOf(path), bytes, backwardSeconds]);
};

export const profileFrom = (numbers: readonly number[], params: unknown): GradientProfile => {
  const paths = leafPaths(params);
  return {
    tensors: Array.from({ length: numbers.length / 3 }, (_, i) => ({
      path: paths[numbers[3 * i]!]!,
      bytes: numbers[3 * i + 1]!,
      backwardSeconds: numbers[3 * i + 2]!,
    })),
  };
};
