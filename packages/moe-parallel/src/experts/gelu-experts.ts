// Shapes: e experts of this rank, S rows that they process, D token width, F expert hidden width.
import { foldIn, gelu, groupedMatmul, normal, type Tensor } from "@skein/tensor-core";
import { checkCounts } from "../options.ts";
import type { Experts, MlpExpertsOptions } from "./experts.ts";

/** Parameters of one expert. A layer stacks them as [e, …]. */
export interface GeluExpertParams {
  readonly up_DF: Tensor;
  readonly down_FD: Tensor;
}

/**
 * Experts that compute `gelu(x U) V`, like the feed-forward layers of `gpt`.
 *
 * Cost: `4·S·D·F` flops for S rows.
 * @throws ArgumentError if a size is not a positive integer.
 * @example
 * ```ts
 * const experts = geluExperts({ width: 4, hidden: 8 });
 * const moe = moeLayer({ gate: switchGate({ width: 4, numExperts: 2 }), experts });
 * const { params } = await evaluate(moe.init, referenceBackend())(randomKey(1));
 * console.log(params.experts.up_DF.shape, params.experts.down_FD.shape); // [2, 4, 8] [2, 8, 4]
 * ```
 */
export const geluExperts = (options: MlpExpertsOptions): Experts<GeluExpertParams> => {
  const { width, hidden, deviation = 0.02, outputDeviation = 0.02 } = options;
  checkCounts("geluExperts", { width, hidden });
  return {
    hiddenDims: { up_DF: 1, down_FD: 0 },
    init: (key) => ({
      up_DF: normal(foldIn(key, 0), [width, hidden], { deviation }),
      down_FD: normal(foldIn(key, 1), [hidden, width], { deviation: outputDeviation }),
    }),
    apply: ({ up_DF, down_FD }, rows_SD, counts_e) =>
      groupedMatmul(gelu(groupedMatmul(rows_SD, up_DF, counts_e)), down_FD, counts_e),
  };
};
