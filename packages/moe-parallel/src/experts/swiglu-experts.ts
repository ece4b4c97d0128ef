// Shapes: e experts of this rank, S rows that they process, D token width, F expert hidden width.
import { foldIn, groupedMatmul, multiply, normal, silu, type Tensor } from "@skein/tensor-core";
import { checkCounts } from "../options.ts";
import type { Experts, MlpExpertsOptions } from "./experts.ts";

/** Parameters of one expert. A layer stacks them as [e, …]. */
export interface SwigluExpertParams {
  readonly gate_DF: Tensor;
  readonly up_DF: Tensor;
  readonly down_FD: Tensor;
}

/**
 * Experts that compute `(silu(x G) ⊙ x U) V`.
 *
 * Cost: `6·S·D·F` flops for S rows.
 * @throws ArgumentError if a size is not a positive integer.
 * @example
 * ```ts
 * const experts = swigluExperts({ width: 4, hidden: 8 });
 * const moe = moeLayer({ gate: switchGate({ width: 4, numExperts: 2 }), experts });
 * const { params } = await evaluate(moe.init, referenceBackend())(randomKey(1));
 * console.log(params.experts.gate_DF.shape); // [2, 4, 8]
 * ```
 * Source: Shazeer 2020, arXiv 2002.05202; the experts of Mixtral and DeepSeek.
 */
export const swigluExperts = (options: MlpExpertsOptions): Experts<SwigluExpertParams> => {
  const { width, hidden, deviation = 0.02, outputDeviation = 0.02 } = options;
  checkCounts("swigluExperts", { width, hidden });
  return {
    hiddenDims: { gate_DF: 1, up_DF: 1, down_FD: 0 },
    init: (key) => ({
      gate_DF: normal(foldIn(key, 0), [width, hidden], { deviation }),
      up_DF: normal(foldIn(key, 1), [width, hidden], { deviation }),
      down_FD: normal(foldIn(key, 2), [hidden, width], { deviation: outputDeviation }),
    }),
    apply: ({ gate_DF, up_DF, down_FD }, rows_SD, counts_e) => {
      const product = (x: Tensor, weight: Tensor): Tensor => groupedMatmul(x, weight, counts_e);
      return product(multiply(silu(product(rows_SD, gate_DF)), product(rows_SD, up_DF)), down_FD);
    },
  };
};
