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
  /**
   * C, number of slots per expert. With as many slots as tokens over all experts, C = T / E, the cost equals that of K
   * = 1. Default: 1.
   */
  readonly slots?: number;
}

/** Parameters of a soft gate; trailing letters of a name are its shape. */
export interface SoftParams {
  readonly slots_RD: Tensor;
  /** Scale of the cosines, f32 []. */
  readonly scale: Tensor;
}

/**
 * Soft MoE gate, without discrete choices. Each slot of an expert gets a mean of all tokens, weighted by the softmax
 * over tokens of `s·cos(x, φ)`. Each token gets a mean of all slots' outputs, weighted by the softmax over slots of the
 * same scores. The whole gate is differentiable, and every expert has work.
 *
 * The softmax over tokens covers the tokens of one rank: all sequences of the rank mix, and later tokens with earlier
 * tokens, so the gate is not suited to language models. Loads are equal by construction, so auxiliary losses have no
 * effect.
 *
 * Cost: `6·T·D·E·C` flops.
 * @throws ArgumentError for sizes that are not integers from 1.
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
