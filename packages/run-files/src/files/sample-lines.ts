import type { Leaves } from "@skein/data";
import type { DType, Shape } from "@skein/tensor-core";

/** First values of a tensor that belongs to one sample. */
export interface Excerpt<Value = number> {
  readonly dtype: DType;
  /** Shape of the complete tensor, of which `first` has the first values. */
  readonly shape: Shape;
  readonly first: readonly Value[];
}

/** Output of a model for one held-out sample. */
export type SampleOutput<Value = number, Text = readonly number[]> =
  | {
      readonly kind: "classes";
      /** Index of the sample in the held-out samples. */
      readonly index: number;
      readonly label: number;
      /** Predicted class; −1 if the logits are not finite numbers. */
      readonly predicted: number;
      /**
       * Names of the true and the predicted class. Absent until the file is written, and if the data has no class
       * names.
       */
      readonly labelName?: string;
      readonly predictedName?: string;
      /** Probability of the predicted class, 0 to 1. */
      readonly probability: Value;
    }
  | {
      readonly kind: "values";
      readonly index: number;
      /** First values of the label. */
      readonly label: readonly Value[];
      readonly predicted: readonly Value[];
    }
  | {
      readonly kind: "text";
      readonly index: number;
      /** Tokens or text of the prompt, of the true continuation, and of the model's continuation. */
      readonly prompt: Text;
      readonly truth: Text;
      readonly continuation: Text;
    }
  | {
      readonly kind: "tree";
      readonly index: number;
      /** Fields of the sample (`given`) and outputs of the model (`made`), by path in their trees. */
      readonly given: Leaves<Excerpt<Value>>;
      readonly made: Leaves<Excerpt<Value>>;
      /** Number of tensors that `given` and `made` omit because there are too many. Absent: no tensors are omitted. */
      readonly leftOut?: number;
    };

/** File in the output folder of a run with model outputs for samples, one line per evaluation. */
export const samplesFile = "samples.jsonl";

/** An image as bytes from 0 to 255 in base64, row by row, with interleaved channels. */
export interface SampleImage {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly bytes: string;
}

/** A number in JSON. Non-finite numbers are stored as strings. */
export type JsonNumber = number | "NaN" | "Infinity" | "-Infinity";

/** A sample as stored in `samples.jsonl`. Tokens of text are decoded. */
export type StoredSample = SampleOutput<JsonNumber, string>;

/**
 * A line of `samples.jsonl`: outputs of an evaluation, or images of the samples in later lines. The key of an image is
 * the sample index. For an image that is not the field `inputs`, a dot and the field path follow, as in
 * `7.query.photo`.
 */
export type SamplesLine =
  | { readonly type: "samples"; readonly step: number; readonly samples: readonly StoredSample[] }
  | { readonly type: "images"; readonly step: number; readonly images: Readonly<Record<string, SampleImage>> };

/** Maximum width and height of an image in pixels: the maximum canvas size in browsers. */
export const longestSide = 4096;
