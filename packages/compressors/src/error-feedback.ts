import { add, subtract, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Compressor } from "./compressor.ts";

export interface ErrorFeedbackState<Inner> {
  /** What has not been sent yet, shaped like the gradient, f32. */
  readonly residual: Tensor;
  readonly inner: Inner;
}

/**
 * Add to each gradient what earlier steps did not send: `u = g + e`, send `C(u)`, keep `e ← u − C(u)`.
 *
 * Sent and kept add up to `u` exactly where the codec keeps or drops whole values (top-k), so nothing is ever lost. The
 * residual accumulates gradients, not steps: it takes the learning rate of the step that sends it.
 *
 * Cost: one f32 per gradient element of state, no bytes on the wire.
 * Source: Seide et al. 2014 (1-bit SGD); Stich et al. 2018, arXiv 1809.07599.
 */
export const withErrorFeedback = <Inner, Payload>(
  compressor: Compressor<Inner, Payload>,
): Compressor<ErrorFeedbackState<Inner>, Payload> => {
  const { aggregation, biased } = compressor;
  return {
    ...(compressor.name === undefined ? {} : { name: `${compressor.name} with error feedback` }),
    aggregation,
    biased,
    init: (gradient) => ({ residual: zerosLike(gradient), inner: compressor.init(gradient) }),
    encode: (gradient, { residual, inner }, context) => {
      const accumulated = add(gradient, residual);
      const { payload, state } = compressor.encode(accumulated, inner, context);
      return { payload, state: { residual: subtract(accumulated, compressor.decode(payload, gradient)), inner: state } };
    },
    decode: (payload, gradient) => compressor.decode(payload, gradient),
    ...(compressor.decodeSum === undefined
      ? {}
      : { decodeSum: (payloads: Payload, numRanks, gradient) => compressor.decodeSum!(payloads, numRanks, gradient) }),
    payloadBytes: (gradient) => compressor.payloadBytes(gradient),
  };
};
