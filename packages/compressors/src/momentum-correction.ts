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
  /** Momentum factor, in [0, 1). */
  readonly momentum: number;
  /**
   * Maximum norm of a bucket's mean gradient. Each rank clips its own gradient to `clipNorm · √P`. Default: no
   * clipping.
   */
  readonly clipNorm?: number;
}

/** State of momentum correction, including the state of the inner aggregator. */
export interface MomentumCorrectionState<Inner> {
  /** Decaying sum of this rank's gradients, f32 `[n]`. */
  readonly velocity: Tensor;
  /** Sum of velocities that have not been sent yet, f32 `[n]`. */
  readonly unsent: Tensor;
  readonly inner: Inner;
}

/** Scales `x` to a Euclidean norm of at most `bound`. Non-finite entries stay non-finite. */
const clipNormTo = (x: Tensor, bound: number): Tensor => {
  // Avoids the absolute norm: squares could overflow, and an infinite norm would turn a finite gradient into zeros.
  const { greatest, norm } = relativeNorm(x);
  return multiply(x, minimum(divide(divide(bound, greatest), norm), 1));
};

/**
 * Momentum correction: accumulates velocities instead of gradients, so that a delayed entry includes its momentum.
 * Updates `v ← m·v + g` and `a ← a + v`, sends `C(a)`, and keeps the residual `a ← a − C(a)`. The velocity of sent
 * entries is reset, `v ← 0` (factor masking), so that stale momentum is not applied again. Replaces error feedback and
 * the optimizer's momentum: use SGD without momentum.
 *
 * With `clipNorm`, each rank clips its gradient to `clipNorm · √P` before accumulation: the mean of P independent
 * gradients of that norm has norm `clipNorm`. The paper uses `clipNorm / √P`, because its gradients already include the
 * factor 1/P of the mean, which the gradients here do not include.
 *
 * If the compressor either sends a value unchanged or does not send it, the sent and the unsent part sum exactly to
 * `a`. With a compressor that sends everything, the velocity is masked for all entries, and the result is SGD without
 * momentum.
 *
 * Masking discards momentum at different times on each rank. If the ranks' gradients differ permanently, SGD therefore
 * converges to a point near the optimum of the mean loss, not to the optimum.
 *
 * @throws ArgumentError if the momentum is outside [0, 1), or the norm is not positive.
 * Cost: state of two f32 per gradient element; no additional bytes sent.
 * @example
 * ```ts
 * const compressor = withMomentumCorrection(topKCompressor({ k: 1 }), { momentum: 0.9 });
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Lin et al. 2018, arXiv 1712.01887, §3.1–3.3 (Deep Gradient Compression).
 */
export const withMomentumCorrection = <Inner>(
  aggregator: Aggregator<Inner>,
  { momentum, clipNorm }: MomentumCorrectionOptions,
): Aggregator<MomentumCorrectionState<Inner>> => {
  checkMomentum("withMomentumCorrection", momentum);
  if (clipNorm !== undefined && !(clipNorm > 0))
    throw new ArgumentError(
      `withMomentumCorrection: clipNorm ${clipNorm} is not positive; use a positive number, or leave clipNorm out`,
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
          replacement: accumulated,
          nextState: (sent) => ({ velocity: where(equal(sent, 0), velocity, 0), unsent: subtract(accumulated, sent) }),
        };
      },
    }),
    // Clipping uses the norm of the full bucket.
    ...(clipNorm !== undefined && { scope: "bucket" }),
    ...(aggregator.contraction && { contraction: (bucket, worldSize) => aggregator.contraction!(bucket, worldSize) }),
  };
};
