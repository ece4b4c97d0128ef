import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Leaves } from "@skein/data";
import { dtypes } from "@skein/tensor-core";
import { z } from "zod";
import { recordSchema } from "../record-schema.ts";
import type { Excerpt } from "../samples/sample-outputs.ts";
import {
  longestSide,
  type SampleImage,
  samplesFile,
  type ToldNumber,
  type ToldSample,
} from "../samples/samples-file.ts";

/** What a page shows of the samples of a run. */
export interface ShownSamples {
  /** The last evaluations, the newest first. */
  readonly evaluations: readonly { readonly step: number; readonly samples: readonly ToldSample[] }[];
  /** Of samples that have some, by their names: see `SamplesLine`. */
  readonly images: Readonly<Record<string, SampleImage>>;
}

/** A longer file is not read at once. */
const mostBytes = 2 ** 27;
const mostEvaluations = 20;

const index = z.int().nonnegative();
const number: z.ZodType<ToldNumber> = z.union([z.number(), z.enum(["NaN", "Infinity", "-Infinity"])]);
const values = z.array(number);
const side = z.int().positive().max(longestSide);
const image: z.ZodType<SampleImage> = z.object({
  width: side,
  height: side,
  channels: z.union([z.literal(1), z.literal(3)]),
  bytes: z.base64(),
});
const excerpts: z.ZodType<Leaves<Excerpt<ToldNumber>>> = recordSchema(
  z.object({ dtype: z.enum(dtypes), shape: z.array(z.int().nonnegative()), first: values }),
);
const sample: z.ZodType<ToldSample> = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("classes"),
    index,
    label: z.number(),
    predicted: z.number(),
    labelName: z.string().exactOptional(),
    predictedName: z.string().exactOptional(),
    probability: number,
  }),
  z.object({ kind: z.literal("values"), index, label: values, predicted: values }),
  z.object({ kind: z.literal("text"), index, prompt: z.string(), truth: z.string(), continuation: z.string() }),
  z.object({
    kind: z.literal("tree"),
    index,
    given: excerpts,
    made: excerpts,
    leftOut: z.int().positive().exactOptional(),
  }),
]);
const line = z.discriminatedUnion("type", [
  z.object({ type: z.literal("samples"), step: z.number(), samples: z.array(sample) }),
  z.object({ type: z.literal("images"), step: z.number(), images: recordSchema(image) }),
]);

/**
 * Read what the model of a run made of samples. Lines that are none of ours, and the last one while it is being
 * written, are passed over; a file that is not there, is no file, or is too long gives nothing.
 */
export const readSamples = async (folder: string): Promise<ShownSamples> => {
  const path = join(folder, samplesFile);
  const evaluations: ShownSamples["evaluations"][number][] = [];
  const images = new Map<string, SampleImage>();
  let text = "";
  try {
    const facts = await lstat(path);
    if (facts.isFile() && facts.size <= mostBytes) text = await readFile(path, "utf8");
  } catch {
    // not there: the job wants none
  }
  for (const one of text.split("\n")) {
    let content: unknown;
    try {
      content = JSON.parse(one);
    } catch {
      continue;
    }
    const { data } = line.safeParse(content);
    if (data === undefined) continue;
    if (data.type === "images") for (const [name, one] of Object.entries(data.images)) images.set(name, one);
    else evaluations.push({ step: data.step, samples: data.samples });
  }
  return { evaluations: evaluations.slice(-mostEvaluations).toReversed(), images: Object.fromEntries(images) };
};
