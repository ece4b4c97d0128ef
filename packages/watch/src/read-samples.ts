import { join } from "node:path";
import { eachLine, recordSchema, stampAt } from "@skein/cli/node";
import type { Leaves } from "@skein/data";
import {
  type Excerpt,
  type JsonNumber,
  longestSide,
  type SampleImage,
  samplesFile,
  type StoredSample,
} from "@skein/run-files/node";
import { dtypes } from "@skein/tensor-core";
import { z } from "zod";

/** Samples of a run for display on a page. */
export interface ShownSamples {
  /** Last evaluations, newest first. */
  readonly evaluations: readonly { readonly step: number; readonly samples: readonly StoredSample[] }[];
  /** Images of samples, by name: see `SamplesLine`. */
  readonly images: Readonly<Record<string, SampleImage>>;
  /** Reason why some samples are missing. Absent: no samples are missing. */
  readonly fault?: string;
}

/** Maximum size in bytes of a samples file that is read for a page. */
const maxBytes = 2 ** 27;
const maxLineBytes = 2 ** 24;
const maxEvaluations = 20;
/** Maximum number of characters of the displayed evaluations as JSON. The same limit applies to their images. */
const maxCharacters = 2 ** 23;

const index = z.int().nonnegative();
const number: z.ZodType<JsonNumber> = z.union([z.number(), z.enum(["NaN", "Infinity", "-Infinity"])]);
const values = z.array(number);
const side = z.int().positive().max(longestSide);
const image: z.ZodType<SampleImage> = z.object({
  width: side,
  height: side,
  channels: z.union([z.literal(1), z.literal(3)]),
  bytes: z.base64(),
});
const excerpts: z.ZodType<Leaves<Excerpt<JsonNumber>>> = recordSchema(
  z.object({ dtype: z.enum(dtypes), shape: z.array(z.int().nonnegative()), first: values }),
);
const sample: z.ZodType<StoredSample> = z.discriminatedUnion("kind", [
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
 * Reads the model outputs for samples of a run. Invalid lines and an incomplete last line are skipped. Returns no
 * samples if the file is missing or not a regular file.
 *
 * Cost: memory for the last evaluations and for one line, regardless of the file size.
 */
export const readSamples = (folder: string): ShownSamples => {
  const path = join(folder, samplesFile);
  const stamp = stampAt(path);
  if (stamp === undefined) return { evaluations: [], images: {} };
  if (stamp.bytes > maxBytes)
    return {
      evaluations: [],
      images: {},
      fault: `${samplesFile} has ${stamp.bytes} bytes, but a page reads at most ${maxBytes}`,
    };
  let evaluations: ShownSamples["evaluations"][number][] = [];
  const images = new Map<string, SampleImage>();
  let [characters, fault] = [0, ""];
  eachLine(
    path,
    (one) => {
      const { data } = line.safeParse(parsed(one));
      if (data === undefined) return;
      if (data.type === "samples")
        evaluations = [...evaluations.slice(1 - maxEvaluations), { step: data.step, samples: data.samples }];
      else
        for (const [name, image] of Object.entries(data.images)) {
          characters += image.bytes.length + name.length - (images.get(name)?.bytes.length ?? 0);
          if (characters <= maxCharacters) images.set(name, image);
          else fault = `images of more than ${maxCharacters} characters are not shown`;
        }
    },
    Math.min(maxLineBytes, stamp.bytes + 1),
  );
  const shown: ShownSamples["evaluations"][number][] = [];
  let left = maxCharacters;
  for (const one of evaluations.toReversed()) {
    left -= JSON.stringify(one).length;
    if (left >= 0) shown.push(one);
    else fault = `evaluations of more than ${maxCharacters} characters are not shown`;
  }
  return { evaluations: shown, images: Object.fromEntries(images), ...(fault !== "" && { fault }) };
};

const parsed = (one: Buffer): unknown => {
  try {
    return JSON.parse(one.toString("utf8"));
  } catch {
    return undefined;
  }
};
