import {
  backwardChunksOf,
  type DispatchChoice,
  type DispatchedLayer,
  type LayerComputing,
} from "@skein/cost-model/planners";
import {
  dataAxis,
  everyRankAxis,
  type ExpertsJob,
  gatesAllPositions,
  type MeshJob,
  meshOf,
  placeOf,
  samplesAtOnce,
} from "@skein/job/node";
import type { FeedForwardLayer } from "@skein/models";
import { buildExpert, buildExperts, capacityOf, dispatchChoices, maxChunksOf, passesFor } from "@skein/step/node";
import {
  add,
  axisIndex,
  type Backend,
  type DeviceArray,
  flattenTree,
  foldIn,
  jit,
  type JitOptions,
  mapTree,
  matmul,
  mean,
  NdArray,
  normal,
  randomKey,
  reshape,
  slice,
  square,
  stack,
  sum,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import { medianSeconds } from "./median-seconds.ts";
import type { ProfileInput } from "./profile-steps.ts";

/**
 * Inputs for measuring the experts of a job. The experts are measured before the model is built, because the model
 * depends on the plan that follows from the measurements.
 */
export interface ExpertsInput extends Pick<ProfileInput, "job" | "backend" | "communicators" | "rank" | "train"> {
  readonly experts: ExpertsJob;
  /** Number of elements in the vector of a token. */
  readonly width: number;
}

/** A compiled function with its arguments. The function returns one number. */
interface Timed {
  run(): Promise<DeviceArray>;
  release(): void;
}

/**
 * A single layer of experts. Its gate, with initial parameters, routes normally distributed random tokens, as after a
 * normalization.
 */
interface SingleLayer {
  /**
   * Compiles the forward and backward pass of the layer with a dispatch choice. The result must be run on all ranks of
   * the mesh.
   */
  compile(choice: DispatchChoice): Timed;
  release(): void;
}

/**
 * Number of timed calls of a layer, of which the median is used. Larger than for a collective, because a call contains
 * both experts and all-to-alls.
 */
const layerSamples = 5;

/** Measures the seconds of several functions, called alternately, and releases them. */
const secondsOf = async (timed: readonly Timed[], backend: Backend): Promise<number[]> => {
  try {
    return await medianSeconds(
      timed.map(({ run }) => run),
      backend,
      layerSamples,
    );
  } finally {
    for (const each of timed) each.release();
  }
};

/** Sums all gradients of a function to one number, so that a backend cannot eliminate any gradient. */
const sumOfGradients = (fn: (given: unknown) => Tensor, given: unknown): Tensor => {
  const [value, gradients] = valueAndGrad(fn)(given);
  return flattenTree<Tensor>(gradients).leaves.reduce((total, leaf) => add(total, sum(leaf)), value);
};

const buildSingleLayer = async (
  {
    experts,
    width,
    mesh,
    numTokens,
    seed,
    axis,
  }: Pick<ExpertsInput, "experts" | "width"> & {
    readonly mesh: MeshJob;
    readonly numTokens: number;
    readonly seed: number;
    /** Mesh axis along which ranks have different tokens. */
    readonly axis: string;
  },
  backend: Backend,
  options: JitOptions,
): Promise<SingleLayer> => {
  const layerOf = ({ way, numChunks, backwardChunks }: DispatchChoice): FeedForwardLayer =>
    buildExperts({ ...experts, dispatch: way, chunks: numChunks, backwardChunks }, width, mesh).layer;
  // Parameters and state are the same for all dispatch methods.
  const { init } = layerOf(dispatchChoices(experts, mesh)[0]);
  const initial = jit(
    (key: Tensor) => {
      const { params, state } = init(key);
      const own = foldIn(foldIn(key, 1), axisIndex(axis));
      return { given: { params, x: normal(own, [1, numTokens, width]) }, state, key: own };
    },
    backend,
    options,
  );
  const first = await initial(randomKey(seed) as never);
  initial.release();
  return {
    compile: (choice) => {
      const layer = layerOf(choice);
      const pass = (given: unknown, state: unknown, key: Tensor): Tensor =>
        sumOfGradients((own) => {
          const { params, x } = own as { readonly params: unknown; readonly x: Tensor };
          const [y, , report] = layer.apply(params, state, x, { train: true, key });
          return add(mean(square(y)), report.loss);
        }, given);
      const compiled = jit(pass, backend, options);
      return {
        run: () => compiled(first.given as never, first.state as never, first.key as never),
        release: () => compiled.release(),
      };
    },
    release: () => {
      for (const leaf of flattenTree<DeviceArray>(first).leaves) backend.free(leaf);
    },
  };
};

/** Returns the number of tokens that one rank routes per step or, with `accumulate`, per microbatch. */
const numTokensOf = ({ job, train, experts }: Pick<ExpertsInput, "job" | "train" | "experts">): number =>
  (samplesAtOnce(job) * train.fields["inputs"]!.shape[0]!) /
  (gatesAllPositions(experts, job.mesh) ? 1 : job.mesh.tensor);

/**
 * Returns the dimensions of an expert layer of a job that determine the cost of its token exchange, as if experts were
 * not sharded.
 */
export const dispatchedLayer = (input: Pick<ExpertsInput, "job" | "train" | "experts" | "width">): DispatchedLayer => {
  const { experts, width } = input;
  const { count: numExperts, topK: numChoices } = experts;
  const numTokens = numTokensOf(input);
  // With a soft gate, the layer sends slots instead of tokens: one slot per expert, each to one expert.
  if (experts.gate === "soft") return { numTokens: numExperts, width, numExperts, expertsPerToken: 1, slots: 1 };
  const { slots } = capacityOf(experts)({ numTokens, numExperts, numChoices });
  return { numTokens, width, numExperts, expertsPerToken: numChoices, slots };
};

/**
 * Measures an expert layer of a job, forward and backward, with each dispatch choice, and returns the seconds of each
 * choice. Must be called on all ranks. Measured times differ between ranks.
 */
export const measureChoices = async (input: ExpertsInput, choices: readonly DispatchChoice[]): Promise<number[]> => {
  const { job, backend, communicators, rank, experts } = input;
  const mesh = meshOf(job);
  const axis = gatesAllPositions(experts, job.mesh) ? dataAxis : everyRankAxis(mesh);
  const layer = await buildSingleLayer(
    { ...input, mesh: job.mesh, numTokens: numTokensOf(input), seed: job.seed, axis },
    backend,
    { mesh, place: placeOf(job, rank), communicators, passes: passesFor(job) },
  );
  try {
    return await secondsOf(choices.map(layer.compile), backend);
  } finally {
    layer.release();
  }
};

/**
 * Compiles the experts of one rank, without dispatch, forward and backward, with the same number of rows for each
 * expert.
 */
const timedExperts = async ({ experts, width, job, backend }: ExpertsInput, numRows: number): Promise<Timed> => {
  const { init, apply } = buildExpert(experts, width);
  const own = experts.count / job.mesh.expert;
  const each = Math.ceil(numRows / own);
  const initial = jit(
    (key: Tensor) => ({
      params: mapTree(init(key), (leaf: Tensor) => stack(Array.from({ length: own }, () => leaf))),
      rows_SD: normal(key, [own * each, width]),
    }),
    backend,
  );
  const first = await initial(randomKey(job.seed) as never);
  initial.release();
  const counts_e = backend.upload(NdArray.from(Array<number>(own).fill(each), [own], "i32"));
  const compiled = jit(
    (given: unknown, counts: Tensor) =>
      sumOfGradients((one) => {
        const { params, rows_SD } = one as { readonly params: unknown; readonly rows_SD: Tensor };
        return mean(square(apply(params, rows_SD, counts)));
      }, given),
    backend,
    { passes: passesFor(job) },
  );
  return {
    run: () => compiled(first as never, counts_e as never),
    release: () => {
      for (const leaf of flattenTree<DeviceArray>([first, counts_e]).leaves) backend.free(leaf);
      compiled.release();
    },
  };
};

/**
 * Share of an expert's forward work that a separate backward pass recomputes, by activation: all matrix products except
 * the last product. The share is one of two products for `gelu`, and two of three for `swiglu`.
 */
const recomputedShare: Readonly<Record<ExpertsJob["activation"], number>> = { gelu: 1 / 2, swiglu: 2 / 3 };

/**
 * Compiles the same computation on rows of tokens in two variants, to measure the time of copying rows into chunks.
 * `whole`: the rows are used as received, in one chunk. `cut`: the rows are first copied into two chunks, as in a
 * backward pass with more chunks than the forward pass.
 *
 * @param each Number of slots per expert, at least two.
 */
const timedRows = (
  { width, job, backend }: ExpertsInput,
  { numExperts }: DispatchedLayer,
  each: number,
): readonly [whole: Timed, cut: Timed] => {
  const rows = backend.upload(NdArray.zeros("f32", [numExperts, each, width]));
  const column = backend.upload(NdArray.zeros("f32", [width, 1]));
  const timed = (chunks: readonly (readonly [begin: number, end: number])[]): Timed => {
    const compiled = jit(
      (all: Tensor, by: Tensor) =>
        chunks
          .map(([begin, end]) => reshape(slice(all, [0, begin], [numExperts, end]), [-1, width]))
          .map((chunk) => sum(matmul(chunk, by)))
          .reduce(add),
      backend,
      { passes: passesFor(job) },
    );
    return { run: () => compiled(rows as never, column as never), release: () => compiled.release() };
  };
  const half = Math.ceil(each / 2);
  const cut = timed([
    [0, half],
    [half, each],
  ]);
  const release = (): void => {
    cut.release();
    for (const array of [rows, column]) backend.free(array);
  };
  return [timed([[0, each]]), { ...cut, release }];
};

/**
 * Measures the compute time of one rank for an expert layer, without communication. Measured are the experts alone, a
 * complete layer in one chunk and in the maximum number of chunks, and copying of rows into chunks. Must be called on
 * all ranks, so that ranks share the machine as in a step. Measured times differ between ranks.
 *
 * @param choices Dispatch choices whose times are to be predicted. Several chunks are measured only if a choice has
 * several chunks. Copying is measured only if a choice has different numbers of chunks in the forward and backward
 * pass.
 */
export const measureComputing = async (
  input: ExpertsInput,
  layer: DispatchedLayer,
  choices: readonly DispatchChoice[],
): Promise<LayerComputing> => {
  const maxChunks = Math.max(...choices.map(maxChunksOf));
  const hasBackwardChunks = choices.some((choice) => backwardChunksOf(choice) !== choice.numChunks);
  const { experts, job, backend } = input;
  const { numTokens, expertsPerToken, numExperts, slots } = layer;
  const own = { ...experts, count: Math.max(numExperts / job.mesh.expert, expertsPerToken) };
  const mesh: MeshJob = { expert: 1, tensor: 1 };
  const [{ way }] = dispatchChoices(own, mesh);
  const alone = await buildSingleLayer(
    { experts: own, width: input.width, mesh, numTokens: numTokensOf(input), seed: job.seed, axis: everyRankAxis({}) },
    backend,
    { passes: passesFor(job) },
  );
  try {
    const numRows = Math.min(numTokens * expertsPerToken, numExperts * slots);
    const each = Math.max(2, Math.ceil(numRows / numExperts)); // a slot for each token would need far more memory
    const timed = [
      await timedExperts(input, numRows),
      alone.compile({ way, numChunks: 1 }),
      ...(maxChunks === 1 ? [] : [alone.compile({ way, numChunks: maxChunks })]),
      ...(hasBackwardChunks ? timedRows(input, layer, each) : []),
    ];
    const [work, one, many = one, whole = 0, cut = 0] = (await secondsOf(timed, backend)) as [
      work: number,
      one: number,
      many?: number,
      whole?: number,
      cut?: number,
    ];
    const copySeconds = (Math.max(0, cut - whole) * slots) / each;
    const expertSeconds = Math.min(work, one);
    const chunkSeconds = Math.max(0, many - one) / Math.max(1, maxChunks - 1);
    return {
      expertSeconds,
      chunkSeconds,
      otherSeconds: Math.max(0, one - expertSeconds - chunkSeconds),
      separateBackward: hasBackwardChunks
        ? { recomputedShare: recomputedShare[experts.activation], copySeconds }
        : undefined,
    };
  } finally {
    alone.release();
  }
};
