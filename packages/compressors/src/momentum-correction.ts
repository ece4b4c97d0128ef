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
   * Maximum norm of the mean gradient of a bucket. Each rank clips its own gradient to `clipNorm · √P`. Default: no
   * clipping.
   */
  readonly clipNorm?: number;
}

/** State of momentum correction, including the state of the inner aggregator. */
export interface MomentumCorrectionState<Inner> {
  /** Decaying sum of this rank's gradients, f32 `[n]`. */
  readonly velocity: Tensor;
  /** Sum of velocities that are not sent yet, f32 `[n]`. */
  readonly unsent: Tensor;
  readonly inner: Inner;
}

/** Scale `x` to a Euclidean norm of at most `bound`. Non-finite entries stay non-finite. */
const clipNormTo = (x: Tensor, bound: number): Tensor => {
  // Does not divide by the norm itself: squares could overflow, and an infinite norm would turn a finite gradient into
  // zeros.
  const { greatest, norm } = relativeNorm(x);
  return multiply(x, minimum(divide(divide(bound, greatest), norm), 1));
};

/**
 * Momentum correction: accumulate velocities instead of gradients, so that a delayed entry includes its momentum. `v ←
 * m·v + g`, `a ← a + v`, send `C(a)`, keep `a ← a − C(a)`. Sent entries reset their velocity, `v ← 0` (factor masking),
 * so that stale momentum is not applied again. Replaces error feedback and the optimizer's momentum: use plain SGD.
 *
 * With `clipNorm`, each rank clips its gradient to `clipNorm · √P` before accumulation: the mean of P independent
 * gradients of that norm has norm `clipNorm`. The paper uses `clipNorm / √P`, because its gradients already include the
 * factor 1/P of the mean. The gradients here do not.
 *
 * If the compressor keeps or sends whole values, the sent and the unsent part sum exactly to `a`. With a compressor
 * that sends everything, the velocity is masked for all entries, and the result is SGD without momentum.
 *
 * Masking discards momentum, at different times on each rank. If the gradients of ranks differ permanently, SGD
 * therefore converges to a point next to the optimum of the mean.
 *
 * @throws ArgumentError for a momentum outside [0, 1) or a norm that is not positive.
 * Cost: two f32 per gradient element of state, no additional bytes sent.
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
    // Clipping uses the norm of the whole bucket.
    ...(clipNorm !== undefined && { scope: "bucket" }),
    ...(aggregator.contraction && { contraction: (bucket, worldSize) => aggregator.contraction!(bucket, worldSize) }),
  };
};
