import { ArgumentError } from "@skein/tensor-core";
import { drawPerClass, chosenSamples, type DrawnSamples } from "./draw-samples.ts";
import { DataError } from "./errors.ts";

/**
 * Draws held-out samples, with the same share of each class if `classes` is given. Both parts are shuffled. The draw is
 * a function of the number of samples and of their classes.
 *
 * @param fraction in (0, 1) that is held out, rounded down; at least one sample.
 * @param options `name` of the data in errors, and `classes` of the samples (see `sampleClasses`). Without classes the
 * draw is from all samples.
 * @throws ArgumentError for another fraction. @throws DataError for fewer than two samples.
 */
export const holdOut = <Some extends DrawnSamples>(
  samples: Some,
  fraction: number,
  { name, classes }: { readonly name: string; readonly classes?: Int32Array | undefined },
): { readonly train: Some; readonly test: Some } => {
  if (!(fraction > 0 && fraction < 1))
    throw new ArgumentError(
      `a held-out fraction of ${fraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  const { count } = samples;
  if (count < 2)
    throw new DataError(
      `${name} holds ${count} samples, but training and evaluation need at least one each; provide at least two`,
    );
  const total = Math.max(1, Math.floor(count * fraction));
  const { order, isDrawn } = drawPerClass(count, total, { classes, spared: 1 });
  const part = (drawn: 0 | 1): Some =>
    chosenSamples(
      samples,
      order.filter((index) => isDrawn[index] === drawn),
    );
  return { train: part(0), test: part(1) };
};
