import type { Job } from "@skein/job/node";
import type { Ratio } from "@skein/models";
import type { EvaluatedOn, EvaluationFigures } from "@skein/run-files/node";
import type { EvaluationSums } from "./evaluation-sums.ts";
import type { Prediction } from "../task/task.ts";

export const evaluatedOn = ({ judgeBy, validationFraction }: Job["data"]): EvaluatedOn => {
  if (judgeBy === "training") return "training";
  return validationFraction === undefined ? "test" : "validation";
};

/** Converts a loss to bits per byte or token. Returns an empty object if no text is predicted. */
export const bitsOf = (predicts: Prediction, loss: number): Pick<EvaluationFigures, "bitsPerByte" | "bitsPerToken"> => {
  if (predicts === "bytes") return { bitsPerByte: loss / Math.LN2 };
  return predicts === "tokens" ? { bitsPerToken: loss / Math.LN2 } : {};
};

/**
 * Returns the metrics by which evaluations can be compared, each as a ratio of two sums. Metrics derived from the loss,
 * such as the perplexity, are omitted because they rank evaluations like the loss.
 *
 * @param own metrics that the model defines.
 */
export const comparedFigures = (
  predicts: Prediction,
  own: Readonly<Record<string, Ratio>> = {},
): Readonly<Record<string, Ratio>> => ({
  loss: { sum: "lossSum", per: "count" },
  ...(predicts === "classes" && { accuracy: { sum: "correct", per: "count" } }),
  ...own,
});

const builtInFigures = (predicts: Prediction, { correct, lossSum, count }: EvaluationSums): EvaluationFigures => {
  const loss = lossSum / count;
  switch (predicts) {
    case "classes":
      return { loss, accuracy: correct! / count };
    case "values":
    case "own":
      return { loss };
    case "bytes":
    case "tokens":
      return { loss, ...bitsOf(predicts, loss), perplexity: Math.exp(loss) };
  }
};

/**
 * Computes metrics from sums.
 * @param own metrics that the model defines.
 */
export const evaluationFigures = (
  predicts: Prediction,
  sums: EvaluationSums,
  own: Readonly<Record<string, Ratio>> = {},
): EvaluationFigures => {
  const metrics = Object.entries(own).map(([name, { sum, per }]) => [name, sums[sum]! / sums[per]!] as const);
  return {
    ...builtInFigures(predicts, sums),
    ...(metrics.length > 0 && { metrics: Object.fromEntries(metrics) }),
  };
};
