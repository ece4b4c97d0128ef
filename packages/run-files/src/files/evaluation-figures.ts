import { digitsText } from "@skein/report";

/**
 * Samples on which a run is evaluated: test samples, validation samples held out from the training samples, or the
 * training samples themselves.
 */
export type EvaluatedOn = "test" | "validation" | "training";

/**
 * Metrics of an evaluation: the loss, metrics derived from the loss and the kind of prediction, and metrics of the
 * model.
 */
export interface EvaluationFigures {
  /** Mean loss over the held-out samples, in nats. If the model predicts values: in the unit of the model's loss. */
  readonly loss: number;
  /** Fraction of correct predictions, 0 to 1. Present only if the model predicts classes. */
  readonly accuracy?: number;
  /** Loss in bits per byte, `loss / ln 2`. Present only if the model predicts bytes. */
  readonly bitsPerByte?: number;
  /** Loss in bits per token, `loss / ln 2`. Present only if the model predicts tokens. */
  readonly bitsPerToken?: number;
  /**
   * Perplexity, `exp(loss)`: number of equally likely bytes or tokens with the same loss. Present only if the model
   * predicts bytes or tokens.
   */
  readonly perplexity?: number;
  /** Metrics that the model defines, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Reserved names in a line of metrics; metrics of a model may not use them. */
export const reservedNames: readonly string[] = [
  "type",
  "step",
  "loss",
  "accuracy",
  "bitsPerByte",
  "bitsPerToken",
  "perplexity",
];

/** Returns all metrics as one flat object, for a line of JSON. */
export const flatFigures = ({ metrics, ...figures }: EvaluationFigures): Readonly<Record<string, number>> => ({
  ...figures,
  ...metrics,
});

/** Formats metrics for a log line: `test loss 0.0432, 98.60 % right`. */
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
