import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { byteTokenizer, type Tokenizer } from "@skein/data";
import { loadTokenizer, readBatch } from "@skein/data/node";
import { copyLines } from "../run/copy-lines.ts";
import type { Job } from "../job/job.ts";
import type { TrainingData } from "../modules/task.ts";
import { type SampleOutput, spreadSamples } from "./sample-outputs.ts";

/** In the output folder of a run: what its model made of samples, a line for each evaluation. */
export const samplesFile = "samples.jsonl";

/** An image that is shown: bytes from 0 to 255 in base64, row by row, channel by channel within a pixel. */
export interface SampleImage {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly bytes: string;
}

/** A sample as a line tells it: tokens of text are decoded. */
export type ToldSample =
  | Exclude<SampleOutput, { readonly kind: "text" }>
  | {
      readonly kind: "text";
      readonly index: number;
      readonly prompt: string;
      readonly truth: string;
      readonly continuation: string;
    };

/** A line: of an evaluation, or of images that later lines name by their index. */
export type SamplesLine =
  | { readonly type: "samples"; readonly step: number; readonly samples: readonly ToldSample[] }
  | { readonly type: "images"; readonly step: number; readonly images: Readonly<Record<string, SampleImage>> };

/** Larger ones are told by their labels alone. */
const mostImageBytes = 2 ** 20;

/** A sample's inputs as an image, where they are one: [height, width, 1 or 3]; f32 from its least to its greatest. */
const imageOf = async ({ test }: Pick<TrainingData, "test">, index: number): Promise<SampleImage | undefined> => {
  const { shape } = test.fields["inputs"]!;
  const [height, width, channels] = shape as [number, number, number];
  if (shape.length !== 3 || (channels !== 1 && channels !== 3) || height * width * channels > mostImageBytes)
    return undefined;
  const array = (await readBatch(test, [index]))["inputs"]!;
  const values = array.toNumbers();
  let bytes = values;
  if (array.dtype !== "u8") {
    const [least, greatest] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    bytes = values.map((value) => Math.round((255 * (value - least)) / (greatest - least || 1)));
  }
  return { width, height, channels, bytes: Buffer.from(bytes).toString("base64") };
};

/** The held-out samples that are shown, as images; none where they are no images. */
const imagesOf = async (data: Pick<TrainingData, "test">, numSamples: number): Promise<Record<string, SampleImage>> => {
  const images: Record<string, SampleImage> = {};
  for (const index of spreadSamples(data.test.count, numSamples)) {
    const image = await imageOf(data, index);
    if (image !== undefined) images[index] = image;
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
): Promise<SamplesFile> => new SamplesFile(folder, fromStep, job, data.predicts, await imagesOf(data, numSamples));

/** Writes `samples.jsonl`: images once, then a line for each evaluation. */
export class SamplesFile {
  private readonly path: string;
  private readonly images: Readonly<Record<string, SampleImage>>;
  private readonly tokenizer: Tokenizer | undefined;
  private hasImages = false;

  /** @param images that samples are shown with, by their indices. */
  constructor(
    folder: string,
    fromStep: number,
    { data: source }: Pick<Job, "data">,
    predicts: TrainingData["predicts"],
    images: Readonly<Record<string, SampleImage>>,
  ) {
    this.path = join(folder, samplesFile);
    this.images = images;
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
    if (sample.kind !== "text") return sample;
    const { prompt, truth, continuation } = sample;
    return { ...sample, prompt: this.text(prompt), truth: this.text(truth), continuation: this.text(continuation) };
  }

  /** Tokens without a tokenizer are told by their numbers. */
  private text(tokens: readonly number[]): string {
    return this.tokenizer?.decode(tokens) ?? tokens.join(" ");
  }

  private write(line: SamplesLine): void {
    appendFileSync(this.path, `${JSON.stringify(line)}\n`);
  }
}
