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

export interface AcpSgdState {
  /** Left factor `[n, r]` per compressed matrix, equal on all ranks. */
  readonly p: readonly Tensor[];
  /** Right factor `[m, r]` per compressed matrix, equal on all ranks. */
  readonly q: readonly Tensor[];
}

export interface AcpSgdOptions extends LowRankOptions {
  /** Factor that this step computes and sends, P or Q. The state contains the other factor, which is used unchanged. */
  readonly compute: "p" | "q";
}

/**
 * ACP-SGD sends one of the two thin factors of each matrix per step, all in a single message. With "p":
 * `Q ← orthogonalise(Q)`, `P = mean(MᵢQ)`. With "q": `P ← orthogonalise(P)`, `Q = mean(MᵢᵀP)`. In both cases
 * `M̂ = PQᵀ`. Both variants have the same state type, so that they can alternate: see `acpSgdCycle`.
 *
 * Matrices, vectors and initial factors are chosen as in `powerSgdAggregator`. Two steps of ACP-SGD send the two
 * messages of one PowerSGD step. `sent` of a rank is `PᵢQᵀ`, or `PQᵢᵀ`. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError if the rank is below 1.
 * Cost: one all-reduce of `v + Σ r·n` elements, or `v + Σ r·m`; `2nmr` flops per matrix, plus `nmr` each for M̂ and
 * `sent`.
 * Source: Zhang et al. 2023, arXiv 2306.08881 (ACP-SGD).
 */
export const acpSgdAggregator = ({ compute, ...options }: AcpSgdOptions): Aggregator<AcpSgdState> => {
  checkLowRankOptions("acpSgdAggregator", options);
  return {
    name: `acp-sgd rank ${options.rank}, ${compute}`,
    biased: true,
    scope: "tensor",
    init: (bucket) => {
      const { matrices } = planLowRank(bucket, options, 1);
      return {
        p: matrices.map((matrix) => randomFactor(matrix.rows, matrix)),
        q: matrices.map((matrix) => randomFactor(matrix.columns, matrix)),
      };
    },
    aggregate: (gradient, { p, q }, bucket, context) => {
      const plan = planLowRank(bucket, options, 1);
      const own = splitLowRank(gradient, bucket, plan);
      // Only Q is renewed. A zero column of P recovers because the next step computes P from the renewed Q.
      const fixed = orthogonaliseAll(
        compute === "p" ? q.map((factor, i) => renewFactor(factor, plan.matrices[i]!)) : p,
      );
      const ownFactors = own.matrices.map((matrix, i) => matmul(matrix, fixed[i]!, { transposeA: compute === "q" }));
      const message = fusedMean([...own.dense, ...ownFactors], context);
      const dense = message.slice(0, own.dense.length);
      const sent = message.slice(own.dense.length);
      const product = (factors: readonly Tensor[]): Tensor[] =>
        factors.map((factor, i) =>
          compute === "p"
            ? matmul(factor, fixed[i]!, { transposeB: true })
            : matmul(fixed[i]!, factor, { transposeB: true }),
        );
      return {
        mean: joinLowRank({ dense, matrices: product(sent) }, plan),
        sent: joinLowRank({ dense: own.dense, matrices: product(ownFactors) }, plan),
        state: compute === "p" ? { p: sent, q: fixed } : { p: fixed, q: sent },
      };
    },
    bytesSent: (bucket, worldSize) => {
      const { denseElements, pElements, qElements } = planLowRank(bucket, options, 1);
      return payloadsSent(
        { aggregation: "sum" },
        4 * (denseElements + (compute === "p" ? pElements : qElements)),
        worldSize,
      );
    },
  };
};

/**
 * The two aggregators of ACP-SGD, used alternately: step t uses the aggregator at index `t mod 2`. The aggregators are
 * compiled separately, because their messages have different lengths. A single aggregator would have to send the longer
 * message and compute both factors.
 * @example
 * ```ts
 * const cycle = acpSgdCycle({ rank: 4 }).map(withErrorFeedback);
 * const params = { w: NdArray.from(new Float32Array(64 * 64), [64, 64]) };
 * const bytes = cycle.map((compressor) => exchangeBytes(params, { compressor }, 2));
 * console.log(bytes, denseBytes(params, 2)); // [1024, 1024] 16384
 * ```
 */
export const acpSgdCycle = (
  options: LowRankOptions,
): readonly [p: Aggregator<AcpSgdState>, q: Aggregator<AcpSgdState>] => [
  acpSgdAggregator({ ...options, compute: "p" }),
  acpSgdAggregator({ ...options, compute: "q" }),
];
