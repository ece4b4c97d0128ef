import { ArgumentError } from "@skein/tensor-core";
import { drawPerClass, chosenSamples, type DrawnSamples } from "./draw-samples.ts";
import { DataError } from "./errors.ts";

/**
 * Splits samples into a training part and a held-out part, with the same share of each class if `classes` is given.
 * Both parts are shuffled. The result depends only on the number of samples and on their classes.
 *
 * @param fraction Fraction to hold out, in (0, 1). The number of samples is rounded down, but at least one sample is
 * held out.
 * @param options `name`: name of the data in errors. `classes`: class of each sample (see `sampleClasses`). Without
 * `classes`, samples are drawn regardless of class.
 * @throws ArgumentError if `fraction` is out of range.
 * @throws DataError if there are fewer than two samples.
 * @example
 * ```ts
 * const inputs = NdArray.from([1, 2, 3, 4], [4, 1]);
 * const records = arrayRecords({ inputs, labels: NdArray.from([0, 0, 1, 1], [4], "i32") });
 * const { train, test } = holdOut(records, 0.5, { name: "digits", classes: sampleClasses(records) });
 * console.log(train.count, test.count); // 2 2
 * ```
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
