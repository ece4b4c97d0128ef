import { add, reshape, subtract, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";

/** State of EF21, including the state of the inner aggregator. */
export interface Ef21State<Inner> {
  /** Estimate of this rank's gradient that the other ranks have, f32 `[n]`. */
  readonly estimate: Tensor;
  /** Mean of the estimates of all ranks, f32 `[n]`, equal on all ranks. */
  readonly mean: Tensor;
  readonly inner: Inner;
}

/**
 * EF21: send only the change. Each rank keeps an estimate gᵢ of its gradient that all other ranks know, sends `cᵢ =
 * C(∇ᵢ − gᵢ)`, and updates `gᵢ ← gᵢ + cᵢ`, `g ← g + mean(cᵢ)`. The initial estimates are zeros.
 *
 * The state is an estimate of the gradient, not an error. For a constant gradient, `‖∇ᵢ − gᵢ‖²` shrinks by C's
 * contraction in every step, by `1 − k/n` for top-k. Unlike with `withErrorFeedback`, the sent means do not sum to the
 * gradients over time. Do not add error feedback. Suited to large batches: the estimate keeps the noise of gradients as
 * if it were gradient.
 *
 * Every rank accumulates the mean itself, so the mean drifts from the estimates by accumulated rounding, about `ε√t`
 * relative after t steps.
 *
 * Cost: two f32 per gradient element of state, no additional bytes sent.
 * @example
 * ```ts
 * const compressor = withEf21(topKCompressor({ k: 1 }));
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [0, -4, 0, 0]
 * ```
 * Source: Richtárik, Sokolov and Fatkhullin 2021, arXiv 2106.05203.
 */
export const withEf21 = <Inner>(aggregator: Aggregator<Inner>): Aggregator<Ef21State<Inner>> => ({
  ...(aggregator.name === undefined ? {} : { name: `${aggregator.name} with EF21` }),
  biased: aggregator.biased,
  scope: aggregator.scope,
  init: (bucket) => ({ estimate: zerosLike(bucket), mean: zerosLike(bucket), inner: aggregator.init(bucket) }),
  aggregate: (gradient, { estimate, mean, inner }, bucket, context) => {
    const update = aggregator.aggregate(subtract(gradient, estimate), inner, bucket, context);
    const [own, all] = [add(estimate, reshape(update.sent, estimate.shape)), add(mean, update.mean)];
    return { mean: all, sent: own, state: { estimate: own, mean: all, inner: update.state } };
  },
  bytesSent: (bucket, worldSize) => aggregator.bytesSent(bucket, worldSize),
});
