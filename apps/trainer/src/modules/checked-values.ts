import {
  type Field,
  isEncoded,
  isFiled,
  isStreamed,
  type Records,
  sampleBytes,
  type TrainingSamples,
} from "@skein/data";
import type { LogitsFacts } from "@skein/models";
import { bytesPerElement, isFloat } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { TrainingData } from "../task/task.ts";

/** Bytes that are looked at together. */
const chunkBytes = 2 ** 20;

/** A value of a field that breaks a rule. */
interface FoundValue {
  readonly sample: number;
  /** Index in the sample, one number per dimension. */
  readonly index: readonly number[];
  /** As stored on the host: bits of 16-bit floats. */
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
 * The first value of a field, in the order of its samples, that breaks a rule. Each byte of overlapping samples is
 * looked at once, if elements do not straddle.
 *
 * @param breaks of values as stored on the host.
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
      const part = bytes.slice(begin + at, begin + Math.min(span, at + chunkBytes)); // a copy: aligned
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

/** Whether the exponent of a 16-bit float is that of NaN and the infinities, by its mask. */
const hasAllOnes = (mask: number) => (bits: number) => (bits & mask) === mask;

const isNotFinite = {
  f32: (value: number): boolean => !Number.isFinite(value),
  f16: hasAllOnes(0x7c00),
  bf16: hasAllOnes(0x7f80),
};

const placeOf = ({ sample, index }: FoundValue): string =>
  `sample ${sample}${index.length === 0 ? "" : ` at [${index.join(", ")}]`}`;

/**
 * Require that floats of samples in memory are finite.
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
      `${what}: ${path} of ${placeOf(found)} is ${value}, and a loss computed from it is NaN; replace the value or drop the sample, or set allowNonFinite: true of the data if the model handles such values`,
    );
  }
};

/** Per part of the data, the first value of a field that breaks a rule. Samples that stay in files are left out. */
const findInParts = (
  { train, test }: Pick<TrainingData, "train" | "test">,
  path: "inputs" | "labels",
  breaks: (value: number) => boolean,
): (readonly [part: "train" | "test", found: FoundValue])[] =>
  (["train", "test"] as const).flatMap((part) => {
    const samples: TrainingSamples = part === "train" ? train : test;
    // classes of encoded images are numbered when found, and tokens of files are checked when read
    if (isStreamed(samples) || isFiled(samples) || isEncoded(samples)) return [];
    const field = samples.fields[path];
    if (field === undefined || field.dtype === "f16" || field.dtype === "bf16") return [];
    const found = findValue(field, samples.count, breaks);
    return found === undefined ? [] : [[part, found] as const];
  });

/**
 * Require that input tokens of samples in memory are below the vocabulary of a model, which looks them up in a table.
 *
 * Cost: one pass over the inputs.
 * @throws ModuleError that names the first other token and its sample.
 */
export const requireTokens = (data: Pick<TrainingData, "train" | "test">, vocabulary: number, what: string): void => {
  for (const [part, found] of findInParts(data, "inputs", (token) => !(token >= 0 && token < vocabulary)))
    throw new ModuleError(
      `${what}: inputs of ${placeOf(found)} of ${part} is ${found.value}, but the model's vocabulary has ${vocabulary} tokens, 0 to ${vocabulary - 1}; correct the tokens, or give a model of a larger vocabulary`,
    );
};

/**
 * Require that labels of samples in memory are classes, bytes or tokens of the data: from 0 to `classes` − 1, or the
 * label that the model ignores. Negative labels pass if the model does not declare what its logits are, since its own
 * loss may leave them out.
 *
 * Cost: one pass over the labels.
 * @throws ModuleError that names the first other label and its sample.
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
        ? `, or if rows with this label are to be left out, say so: labelledModel(…, { ignoreIndex: ${found.value} })`
        : "";
    throw new ModuleError(
      `${what}: the label of ${placeOf(found)} of ${part} is ${found.value}, but classes is ${classes}, so labels are whole numbers from 0 to ${classes - 1}; correct the label or classes${ignored}`,
    );
  }
};
