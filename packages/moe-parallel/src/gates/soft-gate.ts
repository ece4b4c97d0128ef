// Shapes: T tokens of this rank, D width of a token, E experts, C slots of an expert, R = E·C slots of all.
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
  /** C; as many slots as tokens over all experts, C = T / E, cost what K = 1 costs. Default: 1. */
  readonly slots?: number;
}

/** Parameters of a soft gate; letters at a name's end are its shape. */
export interface SoftParams {
  readonly slots_RD: Tensor;
  /** f32 [], of the cosines. */
  readonly scale: Tensor;
}

/**
 * Nothing is chosen: each slot of an expert gets the mean of all tokens, weighted by the softmax over tokens of
 * `s·cos(x, φ)`, and each token the mean of all slots' outputs, weighted by the softmax of the same over slots. All of
 * it is differentiable, and no expert is without work.
 *
 * The softmax over tokens is that of one rank's tokens: all of its sequences mix, and later tokens with earlier ones,
 * so it is not for language models. Since loads are equal by construction, auxiliary losses have nothing to do.
 *
 * Cost: `6·T·D·E·C` flops.
 * @throws ArgumentError for sizes that are not whole numbers from 1.
 * Source: Puigcerver et al. 2023 (Soft MoE), arXiv 2308.00951, with the normalisation of its section 2.3.
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
