import type { AggregationHalves, Aggregator } from "./aggregator.ts";

/** Returns an `aggregate` function that runs both halves of an aggregation in sequence. */
export const aggregateInHalves =
  <State>({ begin, finish }: AggregationHalves<State>): Aggregator<State>["aggregate"] =>
  (gradient, state, bucket, context) => {
    const { pending, ...started } = begin(gradient, state, bucket, context);
    return { mean: finish(pending, bucket, context), ...started };
  };
