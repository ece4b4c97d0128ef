import { existsSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigError, nodeFiles, readBoundedJson, recordSchema, replaceDurably } from "@skein/cli/node";
import { z } from "zod";

/** A trial of a sweep, with its result. */
export interface Trial {
  /** Number of the trial, from 1. */
  readonly trial: number;
  /** Values of the trial, by job key. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly state: "under way" | "finished" | "failed";
  /** Mean loss on the validation samples. */
  readonly loss?: number | undefined;
  /** Share of correctly classified validation samples, 0 to 1. Only for classifiers. */
  readonly accuracy?: number | undefined;
  readonly steps?: number | undefined;
  readonly seconds?: number | undefined;
  /** Reason of a failure. Absent: the trial did not fail. */
  readonly reason?: string | undefined;
}

/** Settings of a sweep. A sweep in a folder can be continued only with equal settings. */
export interface SweepSettings {
  /** SHA-256 of the job, without the values of searched keys. */
  readonly job: string;
  readonly search: "grid" | "random" | "bayes";
  /** Dimensions of the search space, as JSON. */
  readonly space: readonly unknown[];
  readonly seed: number;
  readonly parallel: number;
}

/** Content of a sweep file: settings, and results so far. */
export interface SweepFile {
  readonly format: "skein-sweep";
  readonly version: 1;
  /** Name of the base job. */
  readonly name: string;
  readonly settings: SweepSettings;
  readonly trials: readonly Trial[];
}

const fileSchema: z.ZodType<SweepFile> = z.strictObject({
  format: z.literal("skein-sweep"),
  version: z.literal(1),
  name: z.string(),
  settings: z.strictObject({
    job: z.string(),
    search: z.enum(["grid", "random", "bayes"]),
    space: z.array(z.unknown()),
    seed: z.int(),
    parallel: z.int(),
  }),
  trials: z.array(
    z.strictObject({
      trial: z.int().min(1),
      values: recordSchema(z.unknown()),
      state: z.enum(["under way", "finished", "failed"]),
      loss: z.number().optional(),
      accuracy: z.number().optional(),
      steps: z.int().optional(),
      seconds: z.number().optional(),
      reason: z.string().optional(),
    }),
  ),
});

export const sweepFile = "sweep.json";
/** Maximum size of the sweep file in bytes, enough for 200,000 trials. */
const maxSweepBytes = 128 * 2 ** 20;

/** Returns the output folder of a trial. */
export const trialFolder = (output: string, trial: number): string =>
  join(output, `trial-${String(trial).padStart(3, "0")}`);

export const saveSweep = (output: string, sweep: SweepFile): void =>
  replaceDurably(nodeFiles, join(output, sweepFile), `${JSON.stringify(sweep, undefined, 2)}\n`);

const settingNames: { readonly [setting in keyof SweepSettings]: string } = {
  job: "the job",
  search: "--search",
  space: "--grid and --random",
  seed: "--seed",
  parallel: "--parallel",
};

/**
 * Reads the sweep in a folder. Undefined: the folder contains no sweep.
 *
 * @throws ConfigError if the settings differ, because trials of the earlier sweep would be reported as trials of this
 * sweep.
 */
export const savedSweep = (output: string, settings: SweepSettings): SweepFile | undefined => {
  const path = join(output, sweepFile);
  if (!existsSync(path)) return undefined;
  let sweep: SweepFile;
  try {
    sweep = fileSchema.parse(readBoundedJson(path, maxSweepBytes));
  } catch {
    throw new ConfigError([`${path} is not a sweep file; name another folder with --output`]);
  }
  // Converted to JSON and back, as the settings in the file were, so that undefined values are removed.
  const asked = JSON.parse(JSON.stringify(settings)) as SweepSettings;
  // The number of concurrent trials affects only the points of a Bayesian search.
  for (const [name, description] of Object.entries(settingNames) as [keyof SweepSettings, string][])
    if (!isDeepStrictEqual(sweep.settings[name], asked[name]) && (name !== "parallel" || asked.search === "bayes"))
      throw new ConfigError([
        `--output ${output}: the sweep there has another value of ${description}${name === "job" ? "" : ` (${JSON.stringify(sweep.settings[name])})`}; continue with the same value, or name another folder`,
      ]);
  return sweep;
};
