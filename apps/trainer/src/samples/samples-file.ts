import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { copyLines } from "@skein/cli/node";
import { byteTokenizer, decodeAfter, type Leaves, type Tokenizer } from "@skein/data";
import { loadTokenizer, readBatch } from "@skein/data/node";
import type { Job } from "@skein/job/node";
import {
  type Excerpt,
  type JsonNumber,
  longestSide,
  type SampleImage,
  type SampleOutput,
  samplesFile,
  type SamplesLine,
  type StoredSample,
} from "@skein/run-files/node";
import type { TrainingData } from "@skein/step/node";
import { elementCount, type NdArray, type TensorSpec } from "@skein/tensor-core";
import { spreadSamples } from "./sample-outputs.ts";

/** Maximum total size of a sample's stored images in bytes. Images that would exceed the total are not stored. */
const maxImageBytes = 2 ** 20;
const isImage = ({ shape }: TensorSpec): boolean => {
  const [height = 0, width = 0, channels = 0] = shape;
  const isShown = [height, width].every((side) => side > 0 && side <= longestSide);
  return shape.length === 3 && (channels === 1 || channels === 3) && isShown;
};

/** Returns the paths of a sample's fields that are images, [height, width, 1 or 3], up to the maximum total size. */
const imageFields = (fields: Leaves<TensorSpec>): string[] => {
  let bytes = 0;
  return Object.keys(fields).filter((path) => {
    if (!isImage(fields[path]!)) return false;
    const own = elementCount(fields[path]!.shape);
    if (bytes + own > maxImageBytes) return false;
    bytes += own;
    return true;
  });
};

/** Converts a batch with a single image. Values of f32 images are scaled from their range to 0–255. */
const imageOf = (array: NdArray): SampleImage => {
  const [, height, width, channels] = array.shape as [number, number, number, number];
  const values = array.toNumbers();
  let bytes = values;
  if (array.dtype !== "u8") {
    const [least, greatest] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    bytes = values.map((value) => Math.round((255 * (value - least)) / (greatest - least || 1)));
  }
  return { width, height, channels, bytes: Buffer.from(bytes).toString("base64") };
};

/** Returns the images of the displayed held-out samples. Empty if samples are not images. */
const imagesOf = async (
  { test }: Pick<TrainingData, "test">,
  numSamples: number,
): Promise<Record<string, SampleImage>> => {
  const images: Record<string, SampleImage> = {};
  const paths = imageFields(test.fields);
  if (paths.length === 0) return images;
  for (const index of spreadSamples(test.count, numSamples)) {
    const batch = await readBatch(test, [index]);
    for (const path of paths) images[path === "inputs" ? index : `${index}.${path}`] = imageOf(batch[path]!);
  }
  return images;
};

/**
 * Opens the samples file of a run, which contains model outputs of samples.
 * @param fromStep Number of steps completed before this process. Lines after this step, written by an earlier attempt,
 * are removed.
 */
export const openSamplesFile = async (
  folder: string,
  fromStep: number,
  job: Pick<Job, "data">,
  data: TrainingData,
  numSamples: number,
): Promise<SamplesFile> =>
  new SamplesFile(folder, fromStep, job, { ...data, images: await imagesOf(data, numSamples) });

const jsonNumber = (value: number): JsonNumber => (Number.isFinite(value) ? value : (String(value) as JsonNumber));

const storedExcerpts = (excerpts: Leaves<Excerpt>): Leaves<Excerpt<JsonNumber>> =>
  Object.fromEntries(
    Object.entries(excerpts).map(([path, excerpt]) => [path, { ...excerpt, first: excerpt.first.map(jsonNumber) }]),
  );

/** Writes `samples.jsonl`: first the images, then one line per evaluation. */
export class SamplesFile {
  private readonly path: string;
  private readonly images: Readonly<Record<string, SampleImage>>;
  private readonly tokenizer: Tokenizer | undefined;
  private readonly classNames: readonly string[] | undefined;
  private hasImages = false;

  /**
   * Called by `openSamplesFile`, which loads the images first.
   * @param data Data and images of the displayed samples. Images are keyed by sample index.
   */
  constructor(
    folder: string,
    fromStep: number,
    { data: source }: Pick<Job, "data">,
    {
      predicts,
      classNames,
      images,
    }: Pick<TrainingData, "predicts" | "classNames"> & { readonly images: Readonly<Record<string, SampleImage>> },
  ) {
    this.path = join(folder, samplesFile);
    this.images = images;
    this.classNames = classNames;
    const tokenizerPath = "tokenizer" in source ? source.tokenizer : undefined;
    this.tokenizer =
      predicts === "bytes"
        ? byteTokenizer
        : predicts === "tokens" && tokenizerPath !== undefined
          ? loadTokenizer(tokenizerPath, import.meta.url)
          : undefined;
    if (!existsSync(this.path)) return;
    copyLines(this.path, `${this.path}.tmp`, (text) => {
      try {
        const line = JSON.parse(text) as SamplesLine;
        this.hasImages ||= line.type === "images";
        return line.type === "images" || line.step <= fromStep;
      } catch {
        return false; // the last line of a killed run may be incomplete
      }
    });
    renameSync(`${this.path}.tmp`, this.path);
  }

  record(step: number, samples: readonly SampleOutput[]): void {
    if (!this.hasImages && Object.keys(this.images).length > 0)
      this.write({ type: "images", step, images: this.images });
    this.hasImages = true;
    this.write({ type: "samples", step, samples: samples.map((sample) => this.stored(sample)) });
  }

  private stored(sample: SampleOutput): StoredSample {
    switch (sample.kind) {
      case "classes":
        return { ...sample, ...this.namesIn(sample), probability: jsonNumber(sample.probability) };
      case "values":
        return { ...sample, label: sample.label.map(jsonNumber), predicted: sample.predicted.map(jsonNumber) };
      case "tree":
        return { ...sample, given: storedExcerpts(sample.given), made: storedExcerpts(sample.made) };
      case "text": {
        const { prompt, truth, continuation } = sample;
        return {
          ...sample,
          prompt: this.text(prompt),
          truth: this.text(truth, prompt),
          continuation: this.text(continuation, prompt),
        };
      }
    }
  }

  /** Returns the names of the true and the predicted class. Empty if the data has no class names. */
  private namesIn({ label, predicted }: { readonly label: number; readonly predicted: number }): {
    readonly labelName?: string;
    readonly predictedName?: string;
  } {
    const [labelName, predictedName] = [this.classNames?.[label], this.classNames?.[predicted]];
    return { ...(labelName !== undefined && { labelName }), ...(predictedName !== undefined && { predictedName }) };
  }

  /** Decodes tokens that follow `before`. Without a tokenizer, returns the token numbers as text. */
  private text(tokens: readonly number[], before: readonly number[] = []): string {
    return this.tokenizer === undefined ? tokens.join(" ") : decodeAfter(this.tokenizer, before, tokens);
  }

  private write(line: SamplesLine): void {
    appendFileSync(this.path, `${JSON.stringify(line)}\n`);
  }
}
