// Shapes: T tokens of this rank, D token width, E experts, C slots per expert, R = E·C slots in total.
import {
  type EmptyState,
  full,
  matmul,
  multiply,
  normal,
  reshape,
  softmax,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { checkCounts } from "../options.ts";
import { defineGate, type Gate } from "./gate.ts";
import { checkRouter, type RouterOptions } from "./router.ts";
import { unitRows } from "./unit-rows.ts";

export interface SoftGateOptions extends Omit<RouterOptions, "losses"> {
  /**
   * C, number of slots per expert. With C = T / E, there are as many slots as tokens, and the cost is the same as with
   * one choice per token. Default: 1.
   */
  readonly slots?: number;
}

/** Parameters of a soft gate. The suffix of a parameter's name is the shape of the parameter. */
export interface SoftParams {
  readonly slots_RD: Tensor;
  /** Factor s by which cosines are multiplied, f32 []. */
  readonly scale: Tensor;
}

/**
 * Soft MoE gate, without discrete choices. Scores are `s·cos(x, φ)` for token x and slot parameters φ. The input of
 * each slot is a mean of tokens, weighted by the softmax of the scores over tokens. The output of each token is a mean
 * of slot outputs, weighted by the softmax over slots. The gate is fully differentiable, and every expert is used.
 *
 * The softmax over tokens includes all tokens of one rank. The softmax mixes sequences, and later tokens with earlier
 * tokens, so the gate is not suited to language models. Loads are equal by construction, so auxiliary losses have no
 * effect.
 *
 * Cost: `6·T·D·E·C` flops.
 * @throws ArgumentError if a size is not a positive integer.
 * @example
 * ```ts
 * const gate = softGate({ width: 4, numExperts: 8, slots: 2 });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(Object.keys(params)); // ['scale', 'slots_RD']
 * ```
 * Source: Puigcerver et al. 2023 (Soft MoE), arXiv 2308.00951, with the normalization of its section 2.3.
 */
export const softGate = (options: SoftGateOptions): Gate<SoftParams, EmptyState> => {
  checkRouter("softGate", options);
  const { width, numExperts, slots = 1 } = options;
  checkCounts("softGate", { slots });
  return defineGate({
    name: "softGate",
    width,
    numExperts,
    init: (key) => ({
      params: {
        slots_RD: normal(key, [numExperts * slots, width], { deviation: 1 / Math.sqrt(width) }),
        scale: full([], 1),
      },
      state: {},
    }),
    route: ({ slots_RD, scale }, _, x_TD) => {
      const numTokens = x_TD.shape[0]!;
      const logits_TR = multiply(matmul(unitRows(x_TD), unitRows(slots_RD), { transposeB: true }), scale);
      const bySlot = (x_TR: Tensor): Tensor => reshape(x_TR, [numTokens, numExperts, slots]);
      const combine_TEC = bySlot(softmax(logits_TR));
      return {
        routing: { kind: "mixture", dispatch_TEC: bySlot(softmax(logits_TR, { dim: 0 })), combine_TEC },
        scores: { logits_TE: sum(bySlot(logits_TR), { dims: -1 }), probabilities_TE: sum(combine_TEC, { dims: -1 }) },
      };
    },
  });
};
