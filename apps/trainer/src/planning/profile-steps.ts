import { bucketPerTensor, identityCompressor } from "@skein/compressors";
import type { TrainingSamples } from "@skein/data";
import { batchTree } from "@skein/data";
import { Prefetcher } from "@skein/data/node";
import { batchPartOf, type Job, placeOf } from "@skein/job/node";
import { CompiledSteps, type Curvature, type DeviceState, initState, type Parts, trainedOf } from "@skein/step/node";
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

/** Number of warm-up steps: the first step compiles, the second step has cold caches. */
const warmUpSteps = 2;

export interface ProfileInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  readonly rank: number;
  readonly train: TrainingSamples;
}

/** Measurements of a few profiled steps of a job. */
export interface ProfiledSteps {
  /** Spans of each measured step. */
  readonly spans: readonly (readonly Span[])[];
  /** Gradient buckets, one per tensor. */
  readonly buckets: BucketPlan;
  /** Tree of the trained parameters. Use only paths and specs, because the arrays are released. */
  readonly params: unknown;
}

/**
 * Returns the start time of a collective in the spans of one rank, in seconds.
 *
 * @param what Description of the collective for errors.
 * @param is Returns whether a span name is the name of the collective.
 */
export const startOf = (spans: readonly Span[], what: string, is: (name: string) => boolean): number => {
  const collectives = spans.filter(({ track }) => track === "collectives");
  const found = collectives.find(({ name }) => is(name));
  if (found === undefined)
    throw new InvariantError(`the backend recorded no collective of ${what} among ${collectives.length}`);
  return found.startSeconds;
};

/**
 * Runs a few steps of a job from a new initial state, and exchanges each dense gradient separately. Must be called on
 * all ranks.
 *
 * @param curvature Curvature used instead of the job's curvature. Default: the job's curvature.
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
  // Gradients alternate between lanes: a lane holds at most 64 requests, and waiting for a full lane would be counted
  // as compute time.
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
