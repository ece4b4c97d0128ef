import { add, ArgumentError, multiply, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { substituteGradient } from "./substitute-gradient.ts";

export interface WithMomentumOptions {
  /** Momentum m, the weight of the previous velocity, in [0, 1). */
  readonly momentum: number;
}

/** State of momentum before compression, including the state of the inner aggregator. */
export interface WithMomentumState<Inner> {
  /** Running mean of this rank's gradients, f32 `[n]`. */
  readonly velocity: Tensor;
  readonly inner: Inner;
}

/** Throws ArgumentError if a momentum factor is outside [0, 1). `who` is the function name for the error message. */
export const checkMomentum = (who: string, momentum: number): void => {
  if (!(momentum >= 0 && momentum < 1))
    throw new ArgumentError(`${who}: momentum ${momentum} is not in [0, 1); use a factor such as 0.9`);
};

/**
 * Aggregates each rank's momentum instead of its gradient: `v ← m·v + (1 − m)·g`, and the compressor encodes `v`. Helps
 * methods that are sensitive to the noise of a single batch: with majority vote, the result is Signum; with EF21, it is
 * EF21-SGDM. Also helps coarse methods with error feedback, such as signs, because momentum before compression does not
 * amplify delayed entries, unlike momentum after compression.
 *
 * Replaces the optimizer's momentum: use SGD without momentum. Its learning rate is the learning rate of SGD with
 * momentum, divided by `1 − m`. The initial velocities are zeros, so the first `1/(1 − m)` steps are small, except for
 * methods that send only signs.
 *
 * @throws ArgumentError if the momentum is outside [0, 1).
 * Cost: state of one f32 per gradient element; no additional bytes sent.
 * @example
 * ```ts
 * const compressor = withMomentum(majorityVoteAggregator(), { momentum: 0.9 });
 * const send = (w: Tensor, key: Tensor) =>
 *   exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor, key })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]), randomKey(1));
 * console.log(sent.toNumbers()); // [1, -1, 1, 1]
 * ```
 * Source: Bernstein et al. 2018, arXiv 1802.04434 (Signum); Fatkhullin, Tyurin and Richtárik 2023, arXiv 2305.15155
 * (EF21-SGDM); Zheng, Huang and Kwok 2019, arXiv 1905.10936 (before error feedback; the paper uses Nesterov momentum).
 */
export const withMomentum = <Inner>(
  aggregator: Aggregator<Inner>,
  { momentum }: WithMomentumOptions,
): Aggregator<WithMomentumState<Inner>> => {
  checkMomentum("withMomentum", momentum);
  return {
    ...substituteGradient(aggregator, {
      suffix: "with momentum",
      init: (bucket) => ({ velocity: zerosLike(bucket) }),
      substitute: (gradient, own) => {
        const velocity = add(multiply(own.velocity, momentum), multiply(gradient, 1 - momentum));
        return { replacement: velocity, nextState: () => ({ velocity }) };
      },
    }),
    // With momentum, the sent vector is not an estimate of this step's gradient.
    biased: momentum > 0 || aggregator.biased,
  };
};
