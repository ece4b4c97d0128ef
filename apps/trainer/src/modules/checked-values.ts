import { ModuleError } from "@skein/cli/node";
import {
  type Field,
  isEncoded,
  isFileWindows,
  isStreamed,
  type Records,
  sampleBytes,
  type TrainingSamples,
} from "@skein/data";
import type { LogitsFacts } from "@skein/models";
import type { TrainingData } from "@skein/step/node";
import { bytesPerElement, isFloat } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";

/** Number of bytes that are copied and checked at a time. */
const chunkBytes = 2 ** 20;

/** A value of a sample field that violates a rule, with the number of the sample and the index in the sample. */
interface FoundValue {
  readonly sample: number;
  /** Index of the value in the sample, with one entry per dimension. */
  readonly index: readonly number[];
  /** Value as stored on the host. For a 16-bit float, the bits of the float. */
  readonly value: number;
}

const indexOf = (element: number, shape: readonly number[]): number[] => {
  let rest = element;
  return shape
    .toReversed()
    .map((size) => {
      const at = rest % size;
      rest = Math.floor(rest / size);
      return at;
    })
    .toReversed();
};

/**
 * Finds the first value of a field, in sample order, that violates a rule. If samples are adjacent or overlap, and the
 * stride is a multiple of the element size, all samples are checked as one array, so that shared bytes are checked only
 * once.
 *
 * @param breaks returns whether a value, as stored on the host, violates the rule.
 */
const findValue = (field: Field, count: number, breaks: (value: number) => boolean): FoundValue | undefined => {
  const [each, size] = [sampleBytes(field), bytesPerElement[field.dtype]];
  const { bytes, offsetBytes, strideBytes, shape } = field;
  if (each === 0 || count === 0) return undefined;
  const isDense = strideBytes <= each && strideBytes % size === 0;
  const span = isDense ? (count - 1) * strideBytes + each : each;
  const numSpans = isDense ? 1 : count;
  for (let number = 0; number < numSpans; number++) {
    const begin = offsetBytes + number * strideBytes;
    for (let at = 0; at < span; at += chunkBytes) {
      const part = bytes.slice(begin + at, begin + Math.min(span, at + chunkBytes)); // copied for alignment
      const values: ArrayLike<number> = new hostArrayType[field.dtype](part.buffer, 0, part.length / size);
      for (let i = 0; i < values.length; i++) {
        if (!breaks(values[i]!)) continue;
        const byte = at + i * size;
        const sample = isDense ? Math.min(count - 1, strideBytes === 0 ? 0 : Math.floor(byte / strideBytes)) : number;
        const element = (byte - (isDense ? sample * strideBytes : 0)) / size;
        return { sample, index: indexOf(element, shape), value: values[i]! };
      }
    }
  }
  return undefined;
};

/**
 * Returns a predicate on the bits of a 16-bit float: whether all exponent bits are one, as in NaN and infinities.
 * @param mask bit mask of the exponent.
 */
const hasAllOnes = (mask: number) => (bits: number) => (bits & mask) === mask;

const isNotFinite = {
  f32: (value: number): boolean => !Number.isFinite(value),
  f16: hasAllOnes(0x7c00),
  bf16: hasAllOnes(0x7f80),
};

const positionText = ({ sample, index }: FoundValue): string =>
  `sample ${sample}${index.length === 0 ? "" : ` at [${index.join(", ")}]`}`;

/**
 * Requires that floats of samples in memory are finite.
 *
 * Cost: one pass over the samples.
 * @throws ModuleError that names the sample and the field.
 */
export const requireFinite = ({ count, fields }: Records, what: string): void => {
  for (const [path, field] of Object.entries(fields)) {
    if (!isFloat(field.dtype)) continue;
    const found = findValue(field, count, isNotFinite[field.dtype as keyof typeof isNotFinite]);
    if (found === undefined) continue;
    const value = field.dtype === "f32" ? String(found.value) : "a value that is not finite";
    throw new ModuleError(
      `${what}: ${path} of ${positionText(found)} is ${value}, and a loss computed from it is NaN; replace the value or drop the sample, or set allowNonFinite: true of the data if the model handles such values`,
    );
  }
};

/**
 * Finds the first value of a field that violates a rule, in the training samples and in the test samples. Samples that
 * are stored in files are skipped.
 */
const findInParts = (
  { train, test }: Pick<TrainingData, "train" | "test">,
  path: "inputs" | "labels",
  breaks: (value: number) => boolean,
): (readonly [part: "train" | "test", found: FoundValue])[] =>
  (["train", "test"] as const).flatMap((part) => {
    const samples: TrainingSamples = part === "train" ? train : test;
    // Classes of encoded images are numbered when the images are found. Tokens in files are checked when the tokens are
    // read.
    if (isStreamed(samples) || isFileWindows(samples) || isEncoded(samples)) return [];
    const field = samples.fields[path];
    if (field === undefined || field.dtype === "f16" || field.dtype === "bf16") return [];
    const found = findValue(field, samples.count, breaks);
    return found === undefined ? [] : [[part, found] as const];
  });

/**
 * Requires that the input tokens of samples in memory are smaller than the vocabulary size of a model, because the
 * model uses tokens as table indices.
 * @throws ModuleError that names the first invalid token and its sample.
 */
export const requireTokens = (data: Pick<TrainingData, "train" | "test">, vocabulary: number, what: string): void => {
  for (const [part, found] of findInParts(data, "inputs", (token) => !(token >= 0 && token < vocabulary)))
    throw new ModuleError(
      `${what}: inputs of ${positionText(found)} of ${part} is ${found.value}, but the model's vocabulary has ${vocabulary} tokens, 0 to ${vocabulary - 1}; correct the tokens, or use a model with a larger vocabulary`,
    );
};

/**
 * Requires that the labels of samples in memory are classes, bytes or tokens from 0 to `classes` − 1, or the label that
 * the model ignores. If the model declares no logits, negative labels are accepted, because a user loss may ignore
 * them.
 *
 * Cost: one pass over the labels.
 * @throws ModuleError that names the first invalid label and its sample.
 */
export const requireLabels = (
  { train, test, predicts, classes }: Pick<TrainingData, "train" | "test" | "predicts" | "classes">,
  logits: LogitsFacts | undefined,
  what: string,
): void => {
  if (predicts === "values" || predicts === "own" || classes === undefined) return;
  const least = logits === undefined ? -Infinity : 0;
  const isClass = (label: number): boolean => Number.isInteger(label) && label >= least && label < classes;
  const isWrong = (label: number): boolean => !isClass(label) && label !== logits?.ignoreIndex;
  for (const [part, found] of findInParts({ train, test }, "labels", isWrong)) {
    const ignored =
      found.value < 0
        ? `, or if rows with this label should be ignored, use labelledModel(…, { ignoreIndex: ${found.value} })`
        : "";
    throw new ModuleError(
      `${what}: the label of ${positionText(found)} of ${part} is ${found.value}, but classes is ${classes}, so labels are whole numbers from 0 to ${classes - 1}; correct the label or classes${ignored}`,
    );
  }
};
