import { add, multiply } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { checkNumber } from "../options.ts";
import { leafPaths, zipTrees } from "../tree.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

/**
 * Function that selects the parameters to which weight decay applies. Receives the path of a parameter in the tree,
 * such as `blocks.0.query`, and the parameter's spec. Returns whether weight decay applies, or a factor of at least 0
 * for the decay of the parameter.
 */
export type DecayMask = (path: string, param: Tensor) => boolean | number;

/**
 * Mask that applies decay to matrices and convolution kernels, but not to biases and the scale factors γ of
 * transformers.
 *
 * @example
 * ```ts
 * const optimizer = adamw({ learningRate: 3e-4, weightDecay: 0.1, mask: decayMatrices }); // no decay of biases
 * console.log(Object.keys(optimizer)); // ['init', 'update']
 * ```
 */
export const decayMatrices: DecayMask = (_, param) => param.rank >= 2;

const factorOf = (mask: DecayMask, path: string, param: Tensor): number => {
  const result: unknown = mask(path, param);
  if (typeof result === "boolean" || (typeof result === "number" && result >= 0 && result < Infinity))
    return Number(result);
  throw new ArgumentError(
    `addDecayedWeights: its mask returned ${describe(result)} for ${path}; return true, false, or a factor of the decay from 0`,
  );
};

/**
 * Adds `decay·w` to the updates of the parameters `w` selected by `mask` (default: all parameters). If the mask returns
 * a factor, adds `factor·decay·w`. After `scaleByAdam`, this is AdamW's decoupled weight decay; before `scaleByAdam`,
 * it is L2 regularization.
 *
 * @example
 * ```ts
 * const optimizer = chain(addDecayedWeights(0.1), scaleByLearningRate(0.1));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.890', '2.080']
 * ```
 * Source: Loshchilov and Hutter 2019, arXiv 1711.05101.
 */
export const addDecayedWeights = (decay: number, mask: DecayMask = () => true): GradientTransformation<EmptyState> => {
  checkNumber("addDecayedWeights", "weight decay", decay, { from: 0, usual: 0.01 });
  if (typeof mask !== "function")
    throw new ArgumentError(
      `addDecayedWeights: its mask is ${describe(mask)}; pass a function of path and parameter, such as decayMatrices`,
    );
  return stateless((updates, { params }) => {
    if (decay === 0) return updates;
    const paths = leafPaths(params);
    let next = 0;
    return zipTrees(
      (update: Tensor, param: Tensor) => {
        const factor = factorOf(mask, paths[next++]!, param);
        return factor === 0 ? update : add(update, multiply(param, decay * factor));
      },
      updates,
      params,
    );
  });
};
