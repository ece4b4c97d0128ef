import { add, subtract, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { substituteGradient } from "./substitute-gradient.ts";

/** State of error feedback, including the state of the inner aggregator. */
export interface ErrorFeedbackState<Inner> {
  /** Sum of gradient parts that are not sent yet, f32 `[n]`. */
  readonly residual: Tensor;
  readonly inner: Inner;
}

/**
 * Error feedback: adds the residual e, the unsent part of earlier steps, to each gradient, `u = g + e`, sends `C(u)`,
 * and updates `e ← u − C(u)`.
 *
 * If C either sends a value unchanged or does not send it, as top-k does, the sent part and the residual sum exactly to
 * `u`, so nothing is lost. The residual accumulates gradients, not updates: a delayed gradient gets the learning rate
 * of the step that sends it.
 *
 * Cost: state of one f32 per gradient element; no additional bytes sent.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(topKCompressor({ k: 1 }));
 * const step = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor });
 * const [mean, [state]] = await evaluate(step, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(mean.w.toNumbers()); // [0, -4, 0, 0]
 * console.log(state!.residual.toNumbers()); // [1, 0, 3, 2]
 * ```
 * Source: Seide et al. 2014 (1-bit SGD); Stich et al. 2018, arXiv 1809.07599.
 */
export const withErrorFeedback = <Inner>(aggregator: Aggregator<Inner>): Aggregator<ErrorFeedbackState<Inner>> => ({
  ...substituteGradient(aggregator, {
    suffix: "with error feedback",
    init: (bucket) => ({ residual: zerosLike(bucket) }),
    substitute: (gradient, { residual }) => {
      const accumulated = add(gradient, residual);
      return { replacement: accumulated, nextState: (sent) => ({ residual: subtract(accumulated, sent) }) };
    },
  }),
  ...(aggregator.contraction && { contraction: (bucket, worldSize) => aggregator.contraction!(bucket, worldSize) }),
});
