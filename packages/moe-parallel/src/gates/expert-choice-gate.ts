// Shapes: T tokens of this rank, D token width, E experts, C tokens that an expert takes.
import {
  add,
  arange,
  type EmptyState,
  full,
  greater,
  iota,
  matmul,
  multiply,
  reshape,
  scatterAdd,
  softmax,
  topK,
  transpose,
  where,
  zeros,
} from "@skein/tensor-core";
import { checkPositive } from "../options.ts";
import { defineGate, type Gate } from "./gate.ts";
import { checkRouter, initRouter, type RouterOptions, type RouterParams } from "./router.ts";

export interface ExpertChoiceGateOptions extends RouterOptions {
  /** Average number of experts per token. Default: 2, as in the paper. */
  readonly meanChoices?: number;
}

/**
 * Expert-choice gate: each expert takes its C most probable tokens from each rank, `C = ⌈meanChoices·T/E⌉`. Loads are
 * equal by construction, and a token may get any number of experts, from 0 to E. Weights are the softmax over a token's
 * experts. Among equal probabilities, the earlier token is taken.
 *
 * A choice depends on all tokens of a rank, including later tokens of a sequence. So a language model that generates
 * token by token would choose differently.
 *
 * Cost: `2·T·D·E` flops, and ordering T·E choices, most of which are empty.
 * @example
 * ```ts
 * const gate = expertChoiceGate({ width: 4, numExperts: 2 });
 * const choose = (key: Tensor, x: Tensor) => {
 *   const { params, state } = gate.init(key);
 *   return gate.choose(params, state, x, { train: true, tokenAxes: [] }).figures.load_E;
 * };
 * const load = await evaluate(choose, referenceBackend())(randomKey(1), NdArray.from(Array(32).fill(1), [8, 4]));
 * console.log(load.shape); // [2]
 * ```
 * Source: Zhou et al. 2022, arXiv 2202.09368.
 */
export const expertChoiceGate = (options: ExpertChoiceGateOptions): Gate<RouterParams, EmptyState> => {
  checkRouter("expertChoiceGate", options);
  const { numExperts, meanChoices = 2 } = options;
  checkPositive("expertChoiceGate", "meanChoices", meanChoices, 2);
  return defineGate({
    name: "expertChoiceGate",
    ...options,
    init: (key) => ({ params: initRouter(key, options), state: {} }),
    route: ({ weight_DE }, _, x_TD) => {
      const numTokens = x_TD.shape[0]!;
      const maxPerExpert = Math.min(numTokens, Math.ceil((meanChoices * numTokens) / numExperts - 1e-9));
      const logits_TE = matmul(x_TD, weight_DE);
      const probabilities_TE = softmax(logits_TE);
      const [, tokens_EC] = topK(transpose(probabilities_TE, [1, 0]), maxPerExpert);
      const indices_EC = add(multiply(tokens_EC, numExperts), reshape(arange(numExperts), [numExperts, 1]));
      const takenCounts = scatterAdd(
        zeros([numTokens * numExperts]),
        reshape(indices_EC, [-1]),
        full([numExperts * maxPerExpert], 1),
      );
      const isTaken_TE = greater(reshape(takenCounts, [numTokens, numExperts]), 0);
      return {
        routing: {
          kind: "choices",
          choices_TK: where(isTaken_TE, iota([numTokens, numExperts]), -1),
          weights_TK: where(isTaken_TE, probabilities_TE, 0),
          maxPerExpert,
        },
        scores: { logits_TE, probabilities_TE },
      };
    },
  });
};
