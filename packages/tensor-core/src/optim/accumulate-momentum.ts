import { add, multiply, zerosLike } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { zipTrees } from "../tree.ts";
import type { GradientTransformation, TensorTree } from "./transformation.ts";

export interface MomentumState {
  /** Exponentially decaying sum of past updates: a tree with the structure of the parameters. */
  readonly velocity: TensorTree;
}

export interface MomentumOptions {
  /** Decay factor of the velocity, in [0, 1). */
  readonly decay: number;
  /** Whether to use Nesterov momentum. Default: false. */
  readonly nesterov?: boolean;
}

/**
 * Adds heavy-ball momentum: `v ← decay·v + u`. Here, v is the velocity and u the incoming update. The result is `v`, or
 * `u + decay·v` with Nesterov momentum.
 *
 * @example
 * ```ts
 * const optimizer = chain(accumulateMomentum({ decay: 0.9 }), scaleByLearningRate(0.1));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 * Source: Polyak 1964; Nesterov's form as in Sutskever et al. 2013 and PyTorch's SGD (dampening 0).
 */
export const accumulateMomentum = (options: MomentumOptions): GradientTransformation<MomentumState> => {
  const { decay, nesterov = false } = checkOptions("accumulateMomentum()", options, { decay: true, nesterov: true });
  checkNumber("accumulateMomentum", "decay", decay, { from: 0, below: 1, usual: 0.9 });
  return {
    init: (params) => ({ velocity: zipTrees<unknown, TensorTree>((param: Tensor) => zerosLike(param), params) }),
    update: (updates, state) => {
      const velocity = zipTrees((v: Tensor, u: Tensor) => add(multiply(v, decay), u), state.velocity, updates);
      return [
        zipTrees((u: Tensor, v: Tensor) => (nesterov ? add(u, multiply(v, decay)) : v), updates, velocity),
        { velocity },
      ];
    },
  };
};
