import type { AggregationHalves, Aggregator } from "./aggregator.ts";

/** An aggregation that is its two halves, one after the other. */
export const aggregateInHalves =
  <State>({ begin, finish }: AggregationHalves<State>): Aggregator<State>["aggregate"] =>
  (gradient, state, bucket, context) => {
    const { pending, ...begun } = begin(gradient, state, bucket, context);
    return { mean: finish(pending, bucket, context), ...begun };
  };
