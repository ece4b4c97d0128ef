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
  /** Left factor `[n, r]` of each compressed matrix, the same on all ranks. */
  readonly p: readonly Tensor[];
  /** Right factor `[m, r]`. */
  readonly q: readonly Tensor[];
}

export interface AcpSgdOptions extends LowRankOptions {
  /** The factor that this step sends; the other is kept. */
  readonly compute: "p" | "q";
}

/**
 * Send one of the two thin factors that stand for a matrix, in a single message: with "p", `Q ← orthogonalise(Q)`, `P =
 * mean(MᵢQ)`; with "q", `P ← orthogonalise(P)`, `Q = mean(MᵢᵀP)`; either way `M̂ = PQᵀ`. Both take and leave the same
 * state, to be used in turn: see `acpSgdCycle`.
 *
 * Matrices, vectors and the first factors are as in `powerSgdAggregator`, two of whose messages a pair of steps sends.
 * Each rank has sent `PᵢQᵀ`, or `PQᵢᵀ`. Biased: wrap it in `withErrorFeedback`.
 *
 * @throws ArgumentError for a rank below 1.
 * Cost: one all-reduce of `v + Σ r·n` elements, or `v + Σ r·m`; `2nmr` flops per matrix, and `nmr` each for M̂ and what
 * is sent.
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
      // Only Q is renewed: a P that has died comes alive with the Q of the step after.
      const kept = orthogonaliseAll(compute === "p" ? q.map((factor, i) => renewFactor(factor, plan.matrices[i]!)) : p);
      const ownFactors = own.matrices.map((matrix, i) => matmul(matrix, kept[i]!, { transposeA: compute === "q" }));
      const message = fusedMean([...own.dense, ...ownFactors], context);
      const dense = message.slice(0, own.dense.length);
      const sent = message.slice(own.dense.length);
      const product = (factors: readonly Tensor[]): Tensor[] =>
        factors.map((factor, i) =>
          compute === "p"
            ? matmul(factor, kept[i]!, { transposeB: true })
            : matmul(kept[i]!, factor, { transposeB: true }),
        );
      return {
        mean: joinLowRank({ dense, matrices: product(sent) }, plan),
        sent: joinLowRank({ dense: own.dense, matrices: product(ownFactors) }, plan),
        state: compute === "p" ? { p: sent, q: kept } : { p: kept, q: sent },
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
 * The two aggregators of ACP-SGD, to be used in turn: step t takes the one at position `t mod 2`. They are two, each
 * compiled for itself, because their messages have different lengths; one for both would send the longer, and compute
 * both.
 *
 * @example const cycle = acpSgdCycle({ rank: 4 }).map(withErrorFeedback);
 */
export const acpSgdCycle = (
  options: LowRankOptions,
): readonly [p: Aggregator<AcpSgdState>, q: Aggregator<AcpSgdState>] => [
  acpSgdAggregator({ ...options, compute: "p" }),
  acpSgdAggregator({ ...options, compute: "q" }),
];
