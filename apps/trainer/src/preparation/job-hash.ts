import { flatSettings } from "@skein/checkpoints/node";
import { sha256 } from "@skein/cli/node";
import { type DataJob, hashedData, type Job, withoutModulePaths } from "@skein/job/node";
import type { Prepared } from "./prepared.ts";

/** Job keys whose values determine the results of training. */
const resultKeys = [
  "seed",
  "ranks",
  "backend",
  "blas",
  "precision",
  "batch",
  "epochs",
  "steps",
  "data",
  "model",
  "optimizer",
  "learningRate",
  "clipNorm",
  "compression",
  "buckets",
  "sumOrder",
] as const satisfies readonly (keyof Job)[];

/**
 * Keys of the sections `data` and `model` that are excluded from the job hash, because they do not affect results: file
 * locations (the contents of the files are hashed instead), and when and how fast images are decoded.
 */
const ignoredKeys: readonly string[] = [
  "file",
  "testFile",
  "folder",
  "tokenizer",
  "cacheMegabytes",
  "decodesAtOnce",
  "preprocessor",
];

const withoutIgnored = (part: object): object =>
  Object.fromEntries(Object.entries(part).filter(([key]) => !ignoredKeys.includes(key)));

/**
 * Returns the settings that determine the results of training. Two runs with equal settings have bitwise identical
 * results at the same step.
 *
 * @param data Digest of the samples, if the settings do not identify the samples.
 * @param decoder Name of the image decoder, if the digest covers encoded samples.
 */
const resultSettings = (job: Job, data?: string, decoder?: string): Readonly<Record<string, unknown>> => {
  const values = {
    ...withoutModulePaths(job),
    data: withoutIgnored(hashedData(job.data)),
    model: withoutIgnored(job.model),
  };
  const entries = resultKeys.map((name): [string, unknown] => [name, values[name]]);
  // Recomputation can change which operations are fused, and so the rounding of fused multiply-adds.
  if (job.memory.recompute !== "none") entries.push(["memory", job.memory]);
  // The mesh determines the order of additions.
  const { expert, tensor } = job.mesh;
  if (expert * tensor > 1) entries.push(["mesh", { expert, tensor }]);
  if (job.accumulate !== undefined && job.accumulate > 1) entries.push(["accumulate", job.accumulate]);
  if (job.average !== undefined) entries.push(["average", job.average]);
  for (const name of ["freeze", "rates", "weightDecays", "labelSmoothing"] as const)
    if (job[name] !== undefined) entries.push([name, job[name]]);
  if (job.zero === 1 && job.ranks > 1) entries.push(["zero", job.zero]);
  // Before version 2, the last samples of all data were the validation samples.
  if (job.data.validationFraction !== undefined) entries.push(["validation", 2]);
  if (data !== undefined) entries.push(["samples", data]);
  if (decoder !== undefined) entries.push(["decoder", decoder]);
  return Object.fromEntries(entries);
};

type ResultSettingsInput = Parameters<typeof resultSettings>;

/** Returns the hash of the settings that determine the results of training. */
export const jobHashOf = (...input: ResultSettingsInput): string => sha256(JSON.stringify(resultSettings(...input)));

/**
 * Returns the job hash, and the settings that it covers by dotted key such as `data.kind`, as stored in a checkpoint
 * manifest. Error messages use the settings to name differences.
 */
export const settingsOf = (...input: ResultSettingsInput): Pick<Prepared, "jobHash" | "jobSettings"> => ({
  jobHash: jobHashOf(...input),
  jobSettings: flatSettings(resultSettings(...input)),
});

/**
 * Whether the samples come from user files, which can change. For samples from a program, the job contains a digest.
 */
export const isUserData = (job: DataJob): boolean =>
  "file" in job || ("folder" in job && job.folder !== undefined) || ("tokenizer" in job && job.tokenizer !== undefined);
