import { add, multiply } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { checkNumber } from "../options.ts";
import { leafPaths, zipTrees } from "../tree.ts";
import { type EmptyState, type GradientTransformation, stateless } from "./transformation.ts";

/**
 * Which parameters to decay, by their path in the tree (`blocks.0.query`) and their spec: whether, or by which factor
 * of the decay, from 0.
 */
export type DecayMask = (path: string, param: Tensor) => boolean | number;

/** Decay matrices and kernels, but neither biases nor the gains of normalisation: the custom for transformers. */
export const decayMatrices: DecayMask = (_, param) => param.rank >= 2;

const factorOf = (mask: DecayMask, path: string, param: Tensor): number => {
  const given: unknown = mask(path, param);
  if (typeof given === "boolean" || (typeof given === "number" && given >= 0 && given < Infinity)) return Number(given);
  throw new ArgumentError(
    `addDecayedWeights: its mask gave ${describe(given)} for ${path}; give true, false, or a factor of the decay from 0`,
  );
};

/**
 * `u + decay·w` for the parameters `w` that `mask` picks (default: all), times its factor where it gives one. After
 * `scaleByAdam` it makes AdamW's decoupled decay; before it, L2 regularisation.
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
      (update: Tensor, param: Tensor) => {
        const factor = factorOf(mask, paths[next++]!, param);
        return factor === 0 ? update : add(update, multiply(param, decay * factor));
      },
      updates,
      params,
    );
  });
};
