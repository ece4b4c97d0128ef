import { add, ArgumentError, multiply, type Tensor, zerosLike } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import { substituteGradient } from "./substitute-gradient.ts";

export interface MomentumOptions {
  /** m: share of the past, in [0, 1). */
  readonly momentum: number;
}

/** What momentum before compression keeps, beside the state of the compressor inside it. */
export interface MomentumState<Inner> {
  /** Running mean of this rank's gradients, f32 `[n]`. */
  readonly velocity: Tensor;
  readonly inner: Inner;
}

/** @throws ArgumentError for a momentum outside [0, 1). */
export const checkMomentum = (who: string, momentum: number): void => {
  if (!(momentum >= 0 && momentum < 1))
    throw new ArgumentError(`${who}: momentum ${momentum} is not in [0, 1); use a factor such as 0.9`);
};

/**
 * Aggregate each rank's momentum in place of its gradient: `v ← m·v + (1 − m)·g`, and `v` is what is compressed. For
 * methods that take the noise of one batch for its gradient: around the majority vote it is Signum, around EF21 it is
 * EF21-SGDM. And for coarse ones with error feedback, such as signs: momentum behind it multiplies what comes late, in
 * front of it does not.
 *
 * It takes the place of the optimizer's momentum: use plain SGD with it, whose learning rate is then that of `momentum`
 * over `1 − m`. Velocities begin as zeros, so the first `1/(1 − m)` steps are small, except where only signs are sent.
 *
 * @throws ArgumentError for a momentum outside [0, 1).
 * Cost: one f32 per gradient element of state, no bytes on the wire.
 * @example withMomentum(majorityVoteAggregator(), { momentum: 0.9 })
 * Source: Bernstein et al. 2018, arXiv 1802.04434 (Signum); Fatkhullin, Tyurin and Richtárik 2023, arXiv 2305.15155
 * (EF21-SGDM); Zheng, Huang and Kwok 2019, arXiv 1905.10936 (in front of error feedback, there with Nesterov's
 * momentum).
 */
export const withMomentum = <Inner>(
  aggregator: Aggregator<Inner>,
  { momentum }: MomentumOptions,
): Aggregator<MomentumState<Inner>> => {
  checkMomentum("withMomentum", momentum);
  return {
    ...substituteGradient(aggregator, {
      suffix: "with momentum",
      init: (bucket) => ({ velocity: zerosLike(bucket) }),
      substitute: (gradient, own) => {
        const velocity = add(multiply(own.velocity, momentum), multiply(gradient, 1 - momentum));
        return { instead: velocity, remember: () => ({ velocity }) };
      },
    }),
    // What is sent is no gradient of this step.
    biased: momentum > 0 || aggregator.biased,
  };
};
