import { matmul, type Tensor } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { payloadsSent } from "./compressor.ts";
import { fusedMean } from "./fused-mean.ts";
import {
  checkLowRankOptions,
  joinLowRank,
  type LowRankOptions,
  orthogonaliseAll,
  planLowRank,
  randomFactor,
  renewFactor,
  splitLowRank,
} from "./low-rank.ts";

export interface PowerSgdState {
  /** Right factor `[m, r]` per compressed matrix, equal on all ranks. */
  readonly factors: readonly Tensor[];
}

/**
 * PowerSGD: sends each matrix as a product of two thin matrices. One step of power iteration starts from the previous
 * step's Q: `P = mean(MᵢQ)`, `P ← orthogonalise(P)`, `Q = mean(MᵢᵀP)`, `M̂ = PQᵀ`.
 *
 * A tensor `[…, m]` is viewed as a matrix `[n, m]`. Vectors, and matrices for which compression does not pay off, are
 * sent unchanged in the first of the two messages. `sent` on each rank is `P Qᵢᵀ`, the projection of its gradient on
 * the common P, so that the average of `sent` equals the result `M̂`. The first Q is drawn with a constant seed. A
 * constant gradient of rank r is sent completely from the first step on.
 *
 * Biased: wrap it in `withErrorFeedback`. Not elementwise: a bucket must contain complete tensors.
 *
 * @throws ArgumentError if the rank is below 1.
 * Cost: two all-reduces in sequence, of `v + Σ r·n` and `Σ r·m` elements, v the uncompressed elements, r = min(rank, n,
 * m); `4nmr` flops per matrix, plus `nmr` each for M̂ and `sent`.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(powerSgdAggregator({ rank: 1 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, 2, 3, 2, 4, 6, 3, 6, 9], [3, 3]));
 * console.log(sent.toNumbers().map(Math.round)); // [1, 2, 3, 2, 4, 6, 3, 6, 9]
 * ```
 * Source: Vogels et al. 2019, arXiv 1905.13727.
 */
export const powerSgdAggregator = (options: LowRankOptions): Aggregator<PowerSgdState> => {
  checkLowRankOptions("powerSgdAggregator", options);
  return {
    name: `power-sgd rank ${options.rank}`,
    biased: true,
    scope: "tensor",
    init: (bucket) => ({
      factors: planLowRank(bucket, options, 2).matrices.map((matrix) => randomFactor(matrix.columns, matrix)),
    }),
    aggregate: (gradient, { factors }, bucket, context) => {
      const plan = planLowRank(bucket, options, 2);
      const own = splitLowRank(gradient, bucket, plan);
      const starts = factors.map((factor, i) => renewFactor(factor, plan.matrices[i]!));
      const first = fusedMean([...own.dense, ...own.matrices.map((matrix, i) => matmul(matrix, starts[i]!))], context);
      const dense = first.slice(0, own.dense.length);
      const p = orthogonaliseAll(first.slice(own.dense.length));
      const ownQ = own.matrices.map((matrix, i) => matmul(matrix, p[i]!, { transposeA: true }));
      const q = fusedMean(ownQ, context);
      const product = (right: readonly Tensor[]): Tensor[] =>
        p.map((left, i) => matmul(left, right[i]!, { transposeB: true }));
      return {
        mean: joinLowRank({ dense, matrices: product(q) }, plan),
        sent: joinLowRank({ dense: own.dense, matrices: product(ownQ) }, plan),
        state: { factors: q },
      };
    },
    bytesSent: (bucket, worldSize) => {
      const { denseElements, pElements, qElements } = planLowRank(bucket, options, 2);
      return payloadsSent({ aggregation: "sum" }, 4 * (denseElements + pElements + qElements), worldSize);
    },
  };
};
