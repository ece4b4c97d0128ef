import { add, multiply } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { checkNumber } from "../options.ts";
import { leafPaths, zipTrees } from "../tree.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

/** Which parameters to decay, by their path in the tree (`blocks.0.query`) and their spec. */
export type DecayMask = (path: string, param: Tensor) => boolean;

/** Decay matrices and kernels, but neither biases nor the gains of normalisation: the custom for transformers. */
export const decayMatrices: DecayMask = (_, param) => param.rank >= 2;

/**
 * `u + decay·w` for the parameters `w` that `mask` picks (default: all). After `scaleByAdam` it makes AdamW's decoupled
 * decay; before it, L2 regularisation.
 *
 * Source: Loshchilov and Hutter 2019, arXiv 1711.05101.
 */
export const addDecayedWeights = (decay: number, mask: DecayMask = () => true): GradientTransformation<EmptyState> => {
  checkNumber("addDecayedWeights", "weight decay", decay, { from: 0, usual: 0.01 });
  if (typeof mask !== "function")
    throw new ArgumentError(
      `addDecayedWeights: its mask is ${describe(mask)}; give a function of path and parameter, such as decayMatrices`,
    );
  return stateless((updates, { params }) => {
    if (decay === 0) return updates;
    const paths = leafPaths(params);
    let next = 0;
    return zipTrees(
      (update: Tensor, param: Tensor) => (mask(paths[next++]!, param) ? add(update, multiply(param, decay)) : update),
      updates,
      params,
    );
  });
};
