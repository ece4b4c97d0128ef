import type { Tensor } from "@skein/tensor-core";
import type { Aggregator } from "./aggregator.ts";
import type { Bucket } from "./bucket.ts";
import type { AggregateContext } from "./context.ts";

/** A rank's gradient turned into something else to aggregate, with memory of its own. */
export interface Substitution<Own> {
  /** Put behind the aggregator's name. */
  readonly suffix: string;
  /** Memory before the first step; traced. */
  init(bucket: Bucket): Own;
  /**
   * @returns what is aggregated in place of the gradient, f32 `[n]`, and the memory for the next step, given what of it
   * was sent.
   */
  substitute(
    gradient: Tensor,
    own: Own,
    context: AggregateContext,
  ): { readonly instead: Tensor; readonly remember: (sent: Tensor) => Own };
}

/**
 * An aggregator that is given something in place of each gradient, whole or in halves: the frame of error feedback and
 * of momentum before the compression. It claims no contraction, since that is one of the substitute and not always of
 * the gradient.
 *
 * Cost: none on the wire.
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
    aggregate: (instead: Tensor, inner: Inner) => Result,
  ): Omit<Result, "state"> & { readonly state: State } => {
    const { instead, remember } = substitute(gradient, own, context);
    const result = aggregate(instead, own.inner);
    return { ...result, state: { ...remember(result.sent), inner: result.state } };
  };
  return {
    ...(name === undefined ? {} : { name: `${name} ${suffix}` }),
    biased,
    scope,
    init: (bucket) => ({ ...init(bucket), inner: aggregator.init(bucket) }),
    aggregate: (gradient, own, bucket, context) =>
      around(gradient, own, context, (instead, inner) => aggregator.aggregate(instead, inner, bucket, context)),
    ...(halves && {
      halves: {
        begin: (gradient, own, bucket, context) =>
          around(gradient, own, context, (instead, inner) => halves.begin(instead, inner, bucket, context)),
        finish: (pending, bucket, context) => halves.finish(pending, bucket, context),
      },
    }),
    bytesSent: (bucket, worldSize) => aggregator.bytesSent(bucket, worldSize),
  };
};
