import {
  accumulateMomentum,
  type AdamState,
  addDecayedWeights,
  type AdamOptions,
  ArgumentError,
  chain,
  type DecayMask,
  elementCount,
  type EmptyState,
  flattenTree,
  leafPaths,
  type GradientTransformation,
  type MomentumState,
  multiply,
  partition,
  resolveSchedule,
  type Schedule,
  type ScheduleState,
  scaleByAdam,
  scaleByLearningRate,
  stateless,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import { newtonSchulz, type NewtonSchulzOptions } from "./inverse/newton-schulz.ts";
import { asMatrices, isMatrix, restoreShape, noStacks, sidesOf, type StackDims } from "./matrices.ts";
import { type ReplicaAxis, replicaAxisOf } from "./replica-axis.ts";
import { shareWork } from "./share-work.ts";

export interface OrthogonaliseOptions extends NewtonSchulzOptions {
  /** Parameters that are stacks of matrices. Each matrix of a stack is treated separately. Default: none. */
  readonly stackDims?: StackDims;
  /** Mesh axis over whose ranks the matrices are distributed. Default: each rank computes all matrices. */
  readonly axis?: ReplicaAxis;
}

/**
 * Replaces each matrix by the nearest matrix with orthonormal rows or columns, by `newtonSchulz`, times
 * `√max(1, outputs / inputs)`. Convolution kernels are viewed as [height · width · inputs, outputs]. Matrices of a
 * stack are treated separately. Vectors are not changed.
 *
 * Cost: see `newtonSchulz`; with an axis, each rank computes its share of the matrices, and sends the results to all
 * other ranks.
 * @example
 * ```ts
 * const optimizer = chain(orthogonaliseUpdates({ steps: 10 }), scaleByLearningRate(0.1));
 * const step = (w: Tensor) => optimizer.update({ w }, optimizer.init({ w }), { params: { w } })[0].w;
 * const updates = await evaluate(step, referenceBackend())(NdArray.from([3, 0, 0, 5], [2, 2]));
 * console.log(updates.toNumbers().map((value) => value.toFixed(1))); // ['-0.1', '0.0', '0.0', '-0.1']
 * ```
 * Source: K. Jordan 2024, "Muon".
 */
export const orthogonaliseUpdates = ({
  axis,
  stackDims = noStacks,
  ...options
}: OrthogonaliseOptions = {}): GradientTransformation<EmptyState> =>
  stateless((updates) => {
    const { leaves, structure } = flattenTree<Tensor>(updates);
    const paths = leafPaths(updates);
    const stacks = paths.map(stackDims);
    const matrices = leaves.flatMap((leaf, i) =>
      isMatrix(leaf, stacks[i]) ? [{ leaf, path: paths[i]!, stack: stacks[i] }] : [],
    );
    const results = shareWork(
      "orthogonal",
      matrices.map(({ leaf, path, stack }) => {
        const matrix = asMatrices(leaf, stack);
        const [inputs, outputs] = sidesOf(matrix);
        return {
          shape: leaf.shape,
          cost: elementCount(matrix.shape) * Math.min(inputs, outputs),
          axis: replicaAxisOf(axis, path),
          inputs: [matrix],
          compute: (own: Tensor) =>
            restoreShape(multiply(newtonSchulz(own, options), Math.sqrt(Math.max(1, outputs / inputs))), leaf),
        };
      }),
    );
    let next = 0;
    return unflattenTree(
      structure,
      leaves.map((leaf, i) => (isMatrix(leaf, stacks[i]) ? results[next++] : leaf)),
    );
  });

/** Options of Muon, including the selection of its weights. */
export interface MuonOptions extends OrthogonaliseOptions {
  readonly learningRate: Schedule;
  /** Whether Muon updates a weight, by path. All other weights are updated by Adam. */
  readonly isHidden: (path: string, param: Tensor) => boolean;
  /** Decay of the momentum. Default: 0.95. */
  readonly decay?: number;
  /** Whether to use Nesterov momentum. Default: true. */
  readonly nesterov?: boolean;
  /** Decoupled weight decay of the parameters in `mask`. Default: 0. */
  readonly weightDecay?: number;
  /** Parameters with weight decay. Default: all parameters. */
  readonly mask?: DecayMask;
  /**
   * Adam's learning rate divided by Muon's learning rate. Default: 0.015, which gives 0.0003 for a Muon rate of 0.02.
   */
  readonly adamShare?: number;
  /** Options of Adam. Default: betas 0.9 and 0.95, epsilon 10⁻¹⁰. */
  readonly adam?: AdamOptions;
}

/** State of the weights updated by Muon, and of all other weights. */
export type MuonState = {
  readonly muon: readonly [MomentumState, EmptyState, EmptyState, ScheduleState];
  readonly adam: readonly [AdamState, EmptyState, ScheduleState];
};

/**
 * Muon: momentum with orthonormalized matrices, so that all directions of a weight change at the same rate. Use Muon
 * for the matrices inside a model. Adam updates the embedding, the head and vectors.
 *
 * Cost: one state value per matrix element, two per element of other parameters; see `newtonSchulz`.
 * @example
 * ```ts
 * const optimizer = muon({ learningRate: 0.1, isHidden: (_, param) => param.rank === 2 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 0.89 2.00 3.00 3.89
 * ```
 * Source: K. Jordan 2024, "Muon"; weight decay as in Liu et al. 2025, arXiv 2502.16982.
 */
export const muon = ({
  learningRate,
  isHidden,
  decay = 0.95,
  nesterov = true,
  weightDecay = 0,
  mask,
  adamShare = 0.015,
  adam: adamOptions = {},
  stackDims = noStacks,
  ...options
}: MuonOptions): GradientTransformation<MuonState> => {
  if (!(adamShare > 0 && adamShare < Infinity))
    throw new ArgumentError(
      `muon: adamShare is ${adamShare}, but it multiplies the learning rate; use a finite number above 0, for example 0.015`,
    );
  return partition<MuonState>(
    (path, param) => (isMatrix(param, stackDims(path)) && isHidden(path, param) ? "muon" : "adam"),
    {
      muon: chain(
        accumulateMomentum({ decay, nesterov }),
        orthogonaliseUpdates({ ...options, stackDims }),
        addDecayedWeights(weightDecay, mask),
        scaleByLearningRate(learningRate),
      ),
      adam: chain(
        scaleByAdam({ beta1: 0.9, beta2: 0.95, epsilon: 1e-10, ...adamOptions }),
        addDecayedWeights(weightDecay, mask),
        scaleByLearningRate(
          typeof learningRate === "number"
            ? learningRate * adamShare
            : (step) => multiply(resolveSchedule(learningRate, step), adamShare),
        ),
      ),
    },
  );
};
