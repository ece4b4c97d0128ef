import {
  add,
  ArgumentError,
  divide,
  equal,
  minimum,
  multiply,
  subtract,
  type Tensor,
  where,
  zerosLike,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Aggregator } from "./aggregator.ts";
import { checkMomentum } from "./momentum.ts";
import { relativeNorm } from "./relative-norm.ts";
import { substituteGradient } from "./substitute-gradient.ts";

export interface MomentumCorrectionOptions {
  /** Factor of the past, in [0, 1). */
  readonly momentum: number;
  /**
   * Norm that the mean gradient of a bucket may have; each rank clips its own to `clipNorm · √P`. Default: no clipping.
   */
  readonly clipNorm?: number;
}

/** What momentum correction keeps, beside the state of the compressor inside it. */
export interface MomentumCorrectionState<Inner> {
  /** Decaying sum of this rank's gradients, f32 `[n]`. */
  readonly velocity: Tensor;
  /** Sum of velocities that has not been sent yet, f32 `[n]`. */
  readonly unsent: Tensor;
  readonly inner: Inner;
}

/** `x` scaled to a Euclidean norm of at most `bound`. What is not finite stays so. */
const clipNormTo = (x: Tensor, bound: number): Tensor => {
  // Not by the norm itself: squares could overflow, and an infinite norm would turn a finite gradient into zeros.
  const { greatest, norm } = relativeNorm(x);
  return multiply(x, minimum(divide(divide(bound, greatest), norm), 1));
};

/**
 * Accumulate velocities instead of gradients, so that what is sent late carries the momentum that it would have had: `v
 * ← m·v + g`, `a ← a + v`, send `C(a)`, keep `a ← a − C(a)`; and `v ← 0` where something was sent (factor masking), so
 * that stale momentum does not go on. It takes the place of error feedback and of the optimizer's momentum: use plain
 * SGD with it.
 *
 * With `clipNorm`, each rank clips its gradient to `clipNorm · √P` before it is accumulated: the mean of P independent
 * gradients of that norm has norm `clipNorm`. The paper says `clipNorm / √P`, of gradients that carry the factor 1/P of
 * the mean already; ours do not.
 *
 * Sent and unsent add up to `a` exactly where whole values are kept or sent. With a compressor that sends everything,
 * the velocity is masked everywhere, and what is left is SGD without momentum.
 *
 * Masking forgets momentum, on each rank at its own times. Where the gradients of ranks differ for good, SGD so comes
 * to rest beside the optimum of the mean.
 *
 * @throws ArgumentError for a momentum outside [0, 1) or a norm that is not positive.
 * Cost: two f32 per gradient element of state, no bytes on the wire.
 * Source: Lin et al. 2018, arXiv 1712.01887, §3.1–3.3 (Deep Gradient Compression).
 */
export const withMomentumCorrection = <Inner>(
  aggregator: Aggregator<Inner>,
  { momentum, clipNorm }: MomentumCorrectionOptions,
): Aggregator<MomentumCorrectionState<Inner>> => {
  checkMomentum("withMomentumCorrection", momentum);
  if (clipNorm !== undefined && !(clipNorm > 0))
    throw new ArgumentError(
      `withMomentumCorrection: a norm of at most ${clipNorm} was asked for; use a positive number`,
    );
  return {
    ...substituteGradient(aggregator, {
      suffix: "with momentum correction",
      init: (bucket) => ({ velocity: zerosLike(bucket), unsent: zerosLike(bucket) }),
      substitute: (gradient, own, { axis }) => {
        const clipped = clipNorm === undefined ? gradient : clipNormTo(gradient, clipNorm * Math.sqrt(axisSize(axis)));
        const velocity = add(multiply(own.velocity, momentum), clipped);
        const accumulated = add(own.unsent, velocity);
        return {
          instead: accumulated,
          remember: (sent) => ({ velocity: where(equal(sent, 0), velocity, 0), unsent: subtract(accumulated, sent) }),
        };
      },
    }),
    // The norm that is clipped is that of a bucket.
    ...(clipNorm !== undefined && { scope: "bucket" }),
    ...(aggregator.contraction && { contraction: (bucket, worldSize) => aggregator.contraction!(bucket, worldSize) }),
  };
};
