import { add, subtract, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { substituteGradient } from "./substitute-gradient.ts";

/** What error feedback keeps, beside the state of the compressor inside it. */
export interface ErrorFeedbackState<Inner> {
  /** What has not been sent yet, f32 `[n]`. */
  readonly residual: Tensor;
  readonly inner: Inner;
}

/**
 * Add to each gradient what earlier steps did not send: `u = g + e`, send `C(u)`, keep `e ← u − C(u)`.
 *
 * Sent and kept add up to `u` exactly where whole values are kept or sent (top-k), so nothing is ever lost. The
 * residual accumulates gradients, not steps: it takes the learning rate of the step that sends it.
 *
 * Cost: one f32 per gradient element of state, no bytes on the wire.
 * Source: Seide et al. 2014 (1-bit SGD); Stich et al. 2018, arXiv 1809.07599.
 */
export const withErrorFeedback = <Inner>(aggregator: Aggregator<Inner>): Aggregator<ErrorFeedbackState<Inner>> => ({
  ...substituteGradient(aggregator, {
    suffix: "with error feedback",
    init: (bucket) => ({ residual: zerosLike(bucket) }),
    substitute: (gradient, { residual }) => {
      const accumulated = add(gradient, residual);
      return { instead: accumulated, remember: (sent) => ({ residual: subtract(accumulated, sent) }) };
    },
  }),
  ...(aggregator.contraction && { contraction: (bucket, worldSize) => aggregator.contraction!(bucket, worldSize) }),
});
