import { add, reshape, subtract, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";

/** What EF21 keeps, beside the state of the compressor inside it. */
export interface Ef21State<Inner> {
  /** What the others take this rank's gradient for, f32 `[n]`. */
  readonly estimate: Tensor;
  /** Mean of the estimates of all ranks, f32 `[n]`, the same on all. */
  readonly mean: Tensor;
  readonly inner: Inner;
}

/**
 * Send what is new: each rank keeps an estimate gᵢ of its gradient that all others know, sends `cᵢ = C(∇ᵢ − gᵢ)`, and
 * adds it: `gᵢ ← gᵢ + cᵢ`, `g ← g + mean(cᵢ)`. The estimates begin as zeros.
 *
 * The state is an estimate of the gradient, not an error: under a gradient that does not change, `‖∇ᵢ − gᵢ‖²` falls by
 * C's contraction in every step, by `1 − k/n` for top-k. It does not add up to the gradients over time as
 * `withErrorFeedback` does, and needs no other error feedback. For large batches: it remembers the noise of gradients
 * as if it were gradient.
 *
 * Every rank adds up the mean itself, so it departs from the estimates by the rounding of the steps so far, about `ε√t`
 * of them.
 *
 * Cost: two f32 per gradient element of state, no bytes on the wire.
 * @example withEf21(topKCompressor({ density: 0.01 }))
 * Source: Richtárik, Sokolov and Fatkhullin 2021, arXiv 2106.05203.
 */
export const withEf21 = <Inner>(aggregator: Aggregator<Inner>): Aggregator<Ef21State<Inner>> => ({
  ...(aggregator.name === undefined ? {} : { name: `${aggregator.name} with EF21` }),
  biased: aggregator.biased,
  scope: aggregator.scope,
  init: (bucket) => ({ estimate: zerosLike(bucket), mean: zerosLike(bucket), inner: aggregator.init(bucket) }),
  aggregate: (gradient, { estimate, mean, inner }, bucket, context) => {
    const news = aggregator.aggregate(subtract(gradient, estimate), inner, bucket, context);
    const [own, all] = [add(estimate, reshape(news.sent, estimate.shape)), add(mean, news.mean)];
    return { mean: all, sent: own, state: { estimate: own, mean: all, inner: news.state } };
  },
  bytesSent: (bucket, worldSize) => aggregator.bytesSent(bucket, worldSize),
});
