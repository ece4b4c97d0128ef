import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { byteTokenizer, decodeAfter, type Leaves, type Tokenizer } from "@skein/data";
import { loadTokenizer, readBatch } from "@skein/data/node";
import { elementCount, type NdArray, type TensorSpec } from "@skein/tensor-core";
import { copyLines } from "../files/copy-lines.ts";
import type { Job } from "../job/job.ts";
import type { TrainingData } from "../task/task.ts";
import { type Excerpt, type SampleOutput, spreadSamples } from "./sample-outputs.ts";

/** In the output folder of a run: what its model made of samples, a line for each evaluation. */
export const samplesFile = "samples.jsonl";

/** An image that is shown: bytes from 0 to 255 in base64, row by row, channel by channel within a pixel. */
export interface SampleImage {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly bytes: string;
}

/** A number as JSON holds it: what has no digits is told by its name. */
export type ToldNumber = number | "NaN" | "Infinity" | "-Infinity";

/** A sample as a line tells it: tokens of text are decoded. */
export type ToldSample = SampleOutput<ToldNumber, string>;

/**
 * A line: of an evaluation, or of images of the samples that later lines tell of. An image has the index of its sample
 * as its name, and behind it, where it is not the field `inputs`, a dot and the path of its field: `7.query.photo`.
 */
export type SamplesLine =
  | { readonly type: "samples"; readonly step: number; readonly samples: readonly ToldSample[] }
  | { readonly type: "images"; readonly step: number; readonly images: Readonly<Record<string, SampleImage>> };

/** Samples with more are told without some of their images. */
const mostImageBytes = 2 ** 20;
/** Pixels of a side: no canvas of a page is larger. */
export const longestSide = 4096;

const isImage = ({ shape }: TensorSpec): boolean => {
  const [height = 0, width = 0, channels = 0] = shape;
  const isShown = [height, width].every((side) => side > 0 && side <= longestSide);
  return shape.length === 3 && (channels === 1 || channels === 3) && isShown;
};

/** Fields of a sample that are images, [height, width, 1 or 3], as many as may be. */
const imageFields = (fields: Leaves<TensorSpec>): string[] => {
  let bytes = 0;
  return Object.keys(fields).filter((path) => {
    if (!isImage(fields[path]!)) return false;
    const own = elementCount(fields[path]!.shape);
    if (bytes + own > mostImageBytes) return false;
    bytes += own;
    return true;
  });
};

/** One image as a batch; f32 from its least to its greatest. */
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

/** The held-out samples that are shown, as images; none where they are no images. */
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

/** @param fromStep steps done before; what an earlier attempt told of later ones is left out. */
export const openSamplesFile = async (
  folder: string,
  fromStep: number,
  job: Pick<Job, "data">,
  data: TrainingData,
  numSamples: number,
): Promise<SamplesFile> =>
  new SamplesFile(folder, fromStep, job, { ...data, images: await imagesOf(data, numSamples) });

const told = (value: number): ToldNumber => (Number.isFinite(value) ? value : (String(value) as ToldNumber));

const toldExcerpts = (excerpts: Leaves<Excerpt>): Leaves<Excerpt<ToldNumber>> =>
  Object.fromEntries(
    Object.entries(excerpts).map(([path, excerpt]) => [path, { ...excerpt, first: excerpt.first.map(told) }]),
  );

/** Writes `samples.jsonl`: images once, then a line for each evaluation. */
export class SamplesFile {
  private readonly path: string;
  private readonly images: Readonly<Record<string, SampleImage>>;
  private readonly tokenizer: Tokenizer | undefined;
  private readonly classNames: readonly string[] | undefined;
  private hasImages = false;

  /** @param data with the images that samples are shown with, by their indices. */
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
    const place = "tokenizer" in source ? source.tokenizer : undefined;
    this.tokenizer =
      predicts === "bytes"
        ? byteTokenizer
        : predicts === "tokens" && place !== undefined
          ? loadTokenizer(place, import.meta.url)
          : undefined;
    if (!existsSync(this.path)) return;
    copyLines(this.path, `${this.path}.tmp`, (text) => {
      try {
        const line = JSON.parse(text) as SamplesLine;
        this.hasImages ||= line.type === "images";
        return line.type === "images" || line.step <= fromStep;
      } catch {
        return false; // the last line of a killed run may be cut
      }
    });
    renameSync(`${this.path}.tmp`, this.path);
  }

  record(step: number, samples: readonly SampleOutput[]): void {
    if (!this.hasImages && Object.keys(this.images).length > 0)
      this.write({ type: "images", step, images: this.images });
    this.hasImages = true;
    this.write({ type: "samples", step, samples: samples.map((sample) => this.told(sample)) });
  }

  private told(sample: SampleOutput): ToldSample {
    switch (sample.kind) {
      case "classes":
        return { ...sample, ...this.namesIn(sample), probability: told(sample.probability) };
      case "values":
        return { ...sample, label: sample.label.map(told), predicted: sample.predicted.map(told) };
      case "tree":
        return { ...sample, given: toldExcerpts(sample.given), made: toldExcerpts(sample.made) };
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

  /** Names of the class of a sample and of the predicted one, if the data has some. */
  private namesIn({ label, predicted }: { readonly label: number; readonly predicted: number }): {
    readonly labelName?: string;
    readonly predictedName?: string;
  } {
    const [labelName, predictedName] = [this.classNames?.[label], this.classNames?.[predicted]];
    return { ...(labelName !== undefined && { labelName }), ...(predictedName !== undefined && { predictedName }) };
  }

  /** The text of tokens that follow `before`; the numbers of the tokens if there is no tokenizer. */
  private text(tokens: readonly number[], before: readonly number[] = []): string {
    return this.tokenizer === undefined ? tokens.join(" ") : decodeAfter(this.tokenizer, before, tokens);
  }

  private write(line: SamplesLine): void {
    appendFileSync(this.path, `${JSON.stringify(line)}\n`);
  }
}
