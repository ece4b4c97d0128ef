import { bucketPerTensor, identityCompressor } from "@skein/compressors";
import type { TrainingSamples } from "@skein/data";
import { batchTree } from "@skein/data";
import { Prefetcher } from "@skein/data/node";
import {
  type Backend,
  type BucketPlan,
  type Communicators,
  type DeviceArray,
  flattenTree,
  InvariantError,
  jit,
  randomKey,
  type Span,
  SpanRecorder,
} from "@skein/tensor-core";
import { CompiledSteps } from "../step/compiled-steps.ts";
import type { Curvature } from "../building/curvature.ts";
import type { Job } from "../job/job.ts";
import { trainedOf } from "../building/frozen.ts";
import { batchPartOf, placeOf } from "../job/mesh.ts";
import { type DeviceState, initState, type Parts } from "../step/train-state.ts";

/** Number of warm-up steps: the first compiles, the second has cold caches. */
const warmUpSteps = 2;

export interface ProfileInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  readonly rank: number;
  readonly train: TrainingSamples;
}

/** Results of a few profiled steps of a job. */
export interface ProfiledSteps {
  /** Spans of each counted step. */
  readonly spans: readonly (readonly Span[])[];
  /** Gradient buckets, one tensor each. */
  readonly buckets: BucketPlan;
  /** Trained parameters, with the same specs as the job's. */
  readonly params: unknown;
}

/**
 * Start of a rank's collective in a step, in seconds.
 *
 * @param is matches the collective by its name.
 */
export const startOf = (spans: readonly Span[], what: string, is: (name: string) => boolean): number => {
  const collectives = spans.filter(({ track }) => track === "collectives");
  const found = collectives.find(({ name }) => is(name));
  if (found === undefined)
    throw new InvariantError(`the backend recorded no collective of ${what} among ${collectives.length}`);
  return found.startSeconds;
};

/**
 * Run a few steps of a job on a copy of its state, with a dense exchange of each gradient separately. All ranks call it
 * together.
 *
 * @param curvature replaces the job's curvature.
 */
export const profileSteps = async (
  { job, parts, backend, communicators, rank, train }: ProfileInput,
  { numSteps, curvature = parts.curvature }: { readonly numSteps: number; readonly curvature?: Curvature | undefined },
): Promise<ProfiledSteps> => {
  const identity = identityCompressor();
  const initial = jit(initState(parts), backend, { mesh: parts.mesh, place: placeOf(job, rank), communicators });
  const fresh = (await initial(randomKey(job.seed) as never)) as unknown as DeviceState;
  initial.release();
  const params = trainedOf(parts, fresh.params);
  const buckets = bucketPerTensor(params);
  // Lanes alternate, because a lane has room for 64 requests, and waiting for a full lane would be counted as
  // computation.
  const dense: Parts = {
    ...parts,
    curvature,
    overlap: "wait-free",
    buckets,
    priorities: buckets.map((_, i) => i % 4),
    compressorAt: () => identity as never,
  };
  for (const leaf of flattenTree<DeviceArray>([fresh.residuals, fresh.pending, fresh.due]).leaves) backend.free(leaf);
  let state: DeviceState = { ...fresh, residuals: buckets.map(() => []), pending: [], due: [] };
  const spanSink = new SpanRecorder();
  const steps = new CompiledSteps({
    job: { ...job, overlap: "wait-free" },
    parts: dense,
    backend,
    communicators,
    spanSink,
  });
  const spans: (readonly Span[])[] = [];
  const batches = new Prefetcher(train, { batchSize: job.batch, seed: job.seed, ...batchPartOf(job, rank) });
  try {
    for (let step = 0; step < warmUpSteps + numSteps; step++) {
      const { batch } = await batches.next();
      const begin = spanSink.spans.length;
      const result = await steps.run(step, state, batchTree(batch));
      state = result.state;
      for (const array of [result.loss, result.finite, result.skipped, result.update]) backend.free(array);
      if (step >= warmUpSteps) spans.push(spanSink.spans.slice(begin));
    }
  } finally {
    await batches.close();
  }
  steps.release();
  for (const leaf of flattenTree<DeviceArray>(state).leaves) backend.free(leaf);
  return { spans, buckets, params };
};
