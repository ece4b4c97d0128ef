import { existsSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { readBoundedJson } from "../files/bounded-json.ts";
import { ConfigError } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import { recordSchema } from "../files/record-schema.ts";

/** A trial, and what became of it. */
export interface Trial {
  /** Counted from 1. */
  readonly trial: number;
  /** What it set, by key. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly state: "under way" | "finished" | "failed";
  /** Mean loss on the validation samples. */
  readonly loss?: number | undefined;
  /** Right answers among these, 0 to 1; of classes. */
  readonly accuracy?: number | undefined;
  readonly steps?: number | undefined;
  readonly seconds?: number | undefined;
  /** Why it failed. */
  readonly reason?: string | undefined;
}

/** What a sweep is; a folder goes on with the same alone. */
export interface SweepSettings {
  /** SHA-256 of the job without what trials set. */
  readonly job: string;
  readonly search: "grid" | "random" | "bayes";
  /** The dimensions. */
  readonly space: readonly unknown[];
  readonly seed: number;
  readonly parallel: number;
}

/** A search for settings, as far as it has come. */
export interface SweepFile {
  readonly format: "skein-sweep";
  readonly version: 1;
  /** Of the job. */
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
/** Maximum size of that file, in bytes: 200,000 trials. */
const maxSweepBytes = 128 * 2 ** 20;

/** Folder of a trial's run. */
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
 * The sweep that a folder holds, if it does.
 *
 * @throws ConfigError where it is another one: its trials would be told as those of this.
 */
export const savedSweep = (output: string, settings: SweepSettings): SweepFile | undefined => {
  const path = join(output, sweepFile);
  if (!existsSync(path)) return undefined;
  let sweep: SweepFile;
  try {
    sweep = fileSchema.parse(readBoundedJson(path, maxSweepBytes));
  } catch {
    throw new ConfigError([`${path} is no file of a sweep; name another folder with --output`]);
  }
  // As it lies in the file: what is undefined is not there.
  const asked = JSON.parse(JSON.stringify(settings)) as SweepSettings;
  // How many run at once has a say in what a Bayesian search tries next, and in nothing else.
  for (const [name, said] of Object.entries(settingNames) as [keyof SweepSettings, string][])
    if (!isDeepStrictEqual(sweep.settings[name], asked[name]) && (name !== "parallel" || asked.search === "bayes"))
      throw new ConfigError([
        `--output ${output}: the sweep there was begun with another value of ${said}${name === "job" ? "" : ` (${JSON.stringify(sweep.settings[name])})`}; go on with the same, or name another folder`,
      ]);
  return sweep;
};
