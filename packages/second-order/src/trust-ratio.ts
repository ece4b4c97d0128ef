import {
  accumulateMomentum,
  add,
  addDecayedWeights,
  type AdamOptions,
  type AdamState,
  chain,
  type DecayMask,
  divide,
  type EmptyState,
  flattenTree,
  type GradientTransformation,
  greater,
  leafPaths,
  logicalAnd,
  type MomentumState,
  multiply,
  reshape,
  scaleByAdam,
  scaleByLearningRate,
  type Schedule,
  type ScheduleState,
  stateless,
  type Tensor,
  unflattenTree,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { replicaBarrier } from "./replica-barrier.ts";
import { matricesBy, noStacks, type StackDims } from "./matrices.ts";
import { type ReplicaAxis, replicaAxisOf } from "./replica-axis.ts";
import { tensorNorms } from "./tensor-norms.ts";

export interface TrustRatioOptions {
  /** Factor by which the trust ratio is multiplied. Default: 1. */
  readonly coefficient?: number;
  /** Number ε added to the denominator of the trust ratio. Default: 0. */
  readonly epsilon?: number;
  /** Parameters whose updates are scaled; other updates are not changed. Default: matrices, kernels and stacks. */
  readonly mask?: DecayMask;
  /** Parameters that are stacks of matrices. Each matrix of a stack has a separate ratio. Default: none. */
  readonly stackDims?: StackDims;
  /** Mesh axis over whose ranks the norms are distributed: see `tensorNorms`. Default: each rank computes all norms. */
  readonly axis?: ReplicaAxis;
}

/** Reshapes one number per matrix of a stack so that it broadcasts over the entries of this matrix. */
const alongRows = (each: Tensor, { rank }: Tensor): Tensor =>
  reshape(each, [...each.shape, ...new Array<number>(rank - each.rank).fill(1)]);

/**
 * Scales the update of each tensor, or of each matrix of a stack, in proportion to the norm of the weight:
 * `coefficient · ‖w‖ / (‖u‖ + ε) · u`. If one of the norms is 0, the update is not changed.
 *
 * Cost: two reads of all tensors and a product.
 * @example
 * ```ts
 * const optimizer = chain(scaleByAdam(), scaleByTrustRatio(), scaleByLearningRate(0.01));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 0.96 2.00 3.00 3.96
 * ```
 * Source: You et al. 2017, arXiv 1708.03888.
 */
export const scaleByTrustRatio = ({
  coefficient = 1,
  epsilon = 0,
  stackDims = noStacks,
  mask = matricesBy(stackDims),
  axis,
}: TrustRatioOptions = {}): GradientTransformation<EmptyState> =>
  stateless((updates, { params }) => {
    const paths = leafPaths(params);
    const axes = paths.map((path) => replicaAxisOf(axis, path));
    const isShared = axes.some((own) => own !== undefined && axisSize(own) > 1);
    const [own, moved] = isShared ? replicaBarrier([params, updates] as const) : [params, updates];
    const weights = flattenTree<Tensor>(own).leaves;
    const { leaves, structure } = flattenTree<Tensor>(moved);
    const chosen = leaves.flatMap((_, i) => (mask(paths[i]!, weights[i]!) ? [i] : []));
    const stacks = chosen.map((i) => stackDims(paths[i]!));
    const norms: (readonly [weight: Tensor, update: Tensor])[] = [];
    for (const [along, places] of Map.groupBy(chosen.keys(), (at) => axes[chosen[at]!])) {
      const both = [weights, leaves].flatMap((of) => places.map((at) => of[chosen[at]!]!));
      const own = tensorNorms(
        both,
        along,
        [...places, ...places].map((at) => stacks[at]!),
      );
      for (const [n, at] of places.entries()) norms[at] = [own[n]!, own[places.length + n]!];
    }
    const scaled = new Map(
      chosen.map((i, at) => {
        const [weight, update] = norms[at]!;
        const moves = logicalAnd(greater(weight, 0), greater(update, 0));
        const ratio = where(moves, divide(multiply(weight, coefficient), add(where(moves, update, 1), epsilon)), 1);
        const leaf = leaves[i]!;
        return [i, multiply(leaf, stacks[at] === 0 ? ratio : alongRows(ratio, leaf))];
      }),
    );
    return unflattenTree(
      structure,
      leaves.map((leaf, i) => scaled.get(i) ?? leaf),
    );
  });

/** Options of LARS: options of momentum and of the trust ratio. */
export interface LarsOptions extends Omit<TrustRatioOptions, "epsilon"> {
  readonly learningRate: Schedule;
  /** Decay of the momentum. Default: 0.9. */
  readonly decay?: number;
  /** Coefficient λ of the L2 penalty. Default: 0. */
  readonly weightDecay?: number;
  /** Parameters with an L2 penalty. Default: parameters with a trust ratio. */
  readonly decayMask?: DecayMask;
}

/**
 * LARS: momentum with a trust ratio per tensor, for large batches: `v ← μv + c‖w‖/‖g + λw‖ · (g + λw)`, `w ← w − ηv`.
 * Biases and gains of norms have no trust ratio and no decay.
 *
 * @example
 * ```ts
 * const optimizer = lars({ learningRate: 0.1, weightDecay: 1e-4 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 1.00 2.00 3.00 4.00
 * ```
 * Source: You et al. 2017, arXiv 1708.03888, with the norm of the full update in the denominator.
 */
export const lars = ({
  learningRate,
  decay = 0.9,
  weightDecay = 0,
  coefficient = 0.001,
  stackDims = noStacks,
  mask = matricesBy(stackDims),
  decayMask = mask,
  axis,
}: LarsOptions): GradientTransformation<[EmptyState, EmptyState, MomentumState, ScheduleState]> =>
  chain(
    addDecayedWeights(weightDecay, decayMask),
    scaleByTrustRatio({ coefficient, mask, stackDims, ...(axis !== undefined && { axis }) }),
    accumulateMomentum({ decay }),
    scaleByLearningRate(learningRate),
  );

/** Options of LAMB: options of Adam and of the trust ratio. */
export interface LambOptions extends AdamOptions, Omit<TrustRatioOptions, "epsilon" | "coefficient"> {
  readonly learningRate: Schedule;
  /** Decoupled weight decay. Default: 0.01. */
  readonly weightDecay?: number;
  /** Parameters with weight decay. Default: parameters with a trust ratio. */
  readonly decayMask?: DecayMask;
}

/**
 * LAMB: Adam's direction with decoupled weight decay and a trust ratio per tensor.
 *
 * @example
 * ```ts
 * const optimizer = lamb({ learningRate: 0.01 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 0.96 2.00 3.00 3.96
 * ```
 * Source: You et al. 2020, arXiv 1904.00962, Algorithm 2, with φ(z) = z.
 */
export const lamb = ({
  learningRate,
  weightDecay = 0.01,
  stackDims = noStacks,
  mask = matricesBy(stackDims),
  decayMask = mask,
  axis,
  epsilon = 1e-6,
  ...options
}: LambOptions): GradientTransformation<[AdamState, EmptyState, EmptyState, ScheduleState]> =>
  chain(
    scaleByAdam({ ...options, epsilon }),
    addDecayedWeights(weightDecay, decayMask),
    scaleByTrustRatio({ mask, stackDims, ...(axis !== undefined && { axis }) }),
    scaleByLearningRate(learningRate),
  );
