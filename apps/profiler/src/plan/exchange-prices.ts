import { type PricedExchange, pricedExchange, type StepHardware } from "@skein/cost-model/pricing";
import type { ExchangePlan, ProfiledJob } from "skein-train/profiling";

/**
 * Function that returns the exchange of one bucket, with the predicted times of its operations. The argument lists the
 * gradients in the bucket, each by its bucket number in the step with one bucket per gradient.
 */
export type ExchangePrices = (buckets: readonly number[]) => PricedExchange;

/**
 * Returns a function that predicts the times of exchanges with a job's compression. All gradients in a bucket must be
 * averaged over the same ranks. Buckets with equal shapes are traced only once.
 *
 * @param plan Density of each gradient by path, for compressions that have a density.
 */
export const exchangePrices = (job: ProfiledJob, hardware: StepHardware, plan?: ExchangePlan): ExchangePrices => {
  const gradients = job.gradients();
  const keys = gradients.map(({ path, shape, axis }) => `${shape.join("×")} ${axis}@${plan?.densities?.[path] ?? ""}`);
  const known = new Map<string, PricedExchange>();
  return (buckets) => {
    const key = buckets.map((bucket) => keys[bucket]).join(" ");
    const found =
      known.get(key) ??
      pricedExchange(
        job.exchange(
          buckets.map((bucket) => gradients[bucket]!),
          plan,
        ),
        hardware,
      );
    known.set(key, found);
    return found;
  };
};
