import type { Tensor } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import type { Bucket } from "./bucket.ts";
import type { AggregateContext } from "./context.ts";

/** A stateful transformation that replaces a rank's gradient before aggregation. */
export interface Substitution<Own> {
  /** Suffix of the aggregator's name. */
  readonly suffix: string;
  /** Returns the state before the first step; traced. */
  init(bucket: Bucket): Own;
  /**
   * Replaces a gradient before its aggregation.
   *
   * @returns the replacement of the gradient, f32 `[n]`, and a function that computes the next state from the sent part
   *   of the replacement.
   */
  substitute(
    gradient: Tensor,
    own: Own,
    context: AggregateContext,
  ): { readonly replacement: Tensor; readonly nextState: (sent: Tensor) => Own };
}

/**
 * Wraps an aggregator so that it aggregates a replacement of each gradient, in one step or in halves. Common base of
 * error feedback and of momentum before compression. Does not set a contraction, because the inner contraction applies
 * to the replacement, not to the gradient.
 *
 * Cost: no additional bytes sent.
 */
export const substituteGradient = <Own extends object, Inner>(
  aggregator: Aggregator<Inner>,
  { suffix, init, substitute }: Substitution<Own>,
): Aggregator<Own & { readonly inner: Inner }> => {
  type State = Own & { readonly inner: Inner };
  const { name, biased, scope, halves } = aggregator;
  const around = <Result extends { readonly sent: Tensor; readonly state: Inner }>(
    gradient: Tensor,
    own: State,
    context: AggregateContext,
    aggregate: (replacement: Tensor, inner: Inner) => Result,
  ): Omit<Result, "state"> & { readonly state: State } => {
    const { replacement, nextState } = substitute(gradient, own, context);
    const result = aggregate(replacement, own.inner);
    return { ...result, state: { ...nextState(result.sent), inner: result.state } };
  };
  return {
    ...(name === undefined ? {} : { name: `${name} ${suffix}` }),
    biased,
    scope,
    init: (bucket) => ({ ...init(bucket), inner: aggregator.init(bucket) }),
    aggregate: (gradient, own, bucket, context) =>
      around(gradient, own, context, (replacement, inner) => aggregator.aggregate(replacement, inner, bucket, context)),
    ...(halves && {
      halves: {
        begin: (gradient, own, bucket, context) =>
          around(gradient, own, context, (replacement, inner) => halves.begin(replacement, inner, bucket, context)),
        finish: (pending, bucket, context) => halves.finish(pending, bucket, context),
      },
    }),
    bytesSent: (bucket, worldSize) => aggregator.bytesSent(bucket, worldSize),
  };
};
