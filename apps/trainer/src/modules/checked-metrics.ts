import type { OwnMetrics } from "./factories.ts";
import { refuse } from "./checked-model.ts";

/**
 * Checks user-defined metrics.
 * @param what name of the metrics in errors. @throws ModuleError if the metrics are invalid.
 */
export const checkedMetrics = (made: unknown, what: string): OwnMetrics => {
  const rule = "metrics: an object with rows(judged), numbers for each row by name, and metrics, ratios of their sums";
  const own = (typeof made === "object" && made !== null ? made : {}) as Partial<OwnMetrics>;
  if (typeof own.rows !== "function" || typeof own.metrics !== "object" || own.metrics === null)
    return refuse(what, made, rule);
  return own as OwnMetrics;
};
