import type { Ratio } from "@skein/models";
import { digitsText } from "@skein/report";
import type { EvaluationSums } from "./evaluation-sums.ts";
import type { Job } from "../job/job.ts";
import type { Prediction } from "../task/task.ts";

/** Which samples a run is evaluated on: test samples, or samples of the training part that are held back or not. */
export type EvaluatedOn = "test" | "validation" | "training";

export const evaluatedOn = ({ judgeBy, validationFraction }: Job["data"]): EvaluatedOn => {
  if (judgeBy === "training") return "training";
  return validationFraction === undefined ? "test" : "validation";
};

/** How well a model answers: the loss, and what it means for what is predicted. */
export interface EvaluationFigures {
  /** Mean over the held-out samples: nats, but of values whatever the model's loss is. */
  readonly loss: number;
  /** Right answers, 0 to 1; of classes. */
  readonly accuracy?: number;
  /**
   * `loss / ln 2`, and `exp(loss)`: among how many equally likely ones the model would have to guess; of bytes and of
   * tokens.
   */
  readonly bitsPerByte?: number;
  readonly bitsPerToken?: number;
  readonly perplexity?: number;
  /** Of the model's own, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Names of a line of figures that no figure of a model's own may have. */
export const takenNames: readonly string[] = [
  "type",
  "step",
  "loss",
  "accuracy",
  "bitsPerByte",
  "bitsPerToken",
  "perplexity",
];

/** A loss in bits, where text is predicted. */
export const bitsOf = (predicts: Prediction, loss: number): Pick<EvaluationFigures, "bitsPerByte" | "bitsPerToken"> => {
  if (predicts === "bytes") return { bitsPerByte: loss / Math.LN2 };
  return predicts === "tokens" ? { bitsPerToken: loss / Math.LN2 } : {};
};

/**
 * Which sums a figure is the ratio of, for each figure that evaluations can be compared by: those that follow from the
 * loss, such as the perplexity, compare as it does.
 *
 * @param own figures that the model names.
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

/** @param own figures that the model names. */
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

/** All figures side by side, for a line of JSON. */
export const flatFigures = ({ metrics, ...figures }: EvaluationFigures): Readonly<Record<string, number>> => ({
  ...figures,
  ...metrics,
});

/** For people: `test loss 0.0432, 98.60 % right`. */
export const formatFigures = (
  { loss, accuracy, bitsPerByte, bitsPerToken, perplexity, metrics = {} }: EvaluationFigures,
  on: EvaluatedOn,
): string =>
  [
    `${on} loss ${loss.toFixed(4)}`,
    ...(accuracy === undefined ? [] : [`${(accuracy * 100).toFixed(2)} % right`]),
    ...(bitsPerByte === undefined ? [] : [`${bitsPerByte.toFixed(3)} bits per byte`]),
    ...(bitsPerToken === undefined ? [] : [`${bitsPerToken.toFixed(3)} bits per token`]),
    ...(perplexity === undefined ? [] : [`perplexity ${perplexity.toFixed(2)}`]),
    ...Object.entries(metrics).map(([name, value]) => `${name} ${digitsText(value, 4)}`),
  ].join(", ");
