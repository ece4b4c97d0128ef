import { lstatSync } from "node:fs";
import { join } from "node:path";
import { eachLine } from "@skein/cli/node";
import type { Histogram, ParameterHistograms, StepHistograms } from "@skein/report";
import { z } from "zod";
import { histogramsFile } from "./histograms-file.ts";

/** Histograms of a run for display on a page. */
export interface ShownHistograms {
  /** Steps with histograms, newest first. */
  readonly steps: readonly number[];
  /**
   * Histograms of the requested step, or of the newest step if no step is requested; null if there are no histograms.
   */
  readonly shown: StepHistograms | null;
}

/** Maximum size in bytes of a histograms file that is read. */
const maxBytes = 2 ** 30;
const maxBins = 1024;

const number = z.number().nullable();
const size = z.int().nonnegative();
const histogram: z.ZodType<Histogram> = z.object({
  size,
  zeros: size,
  nonFinite: size,
  min: number,
  max: number,
  mean: number,
  norm: number,
  counts: z.array(size).max(maxBins),
});
const parameter: z.ZodType<ParameterHistograms> = z.object({
  path: z.string(),
  shape: z.array(size),
  weights: histogram,
  gradients: histogram.optional(),
});

/** Matches the type and step at the beginning of a line. */
const head = /^\{"type":"(parameter|complete)","step":(\d{1,16}),/;

/**
 * Reads histograms of a run. Incomplete steps and invalid lines are skipped. If a step was recorded twice, the later
 * record is returned. Returns an empty result if the file is missing, not regular, or too long.
 *
 * Cost: reads the whole file, and parses the lines of one step.
 * @param requested Step to return. Default: the newest step.
 */
export const readHistograms = (folder: string, requested?: number): ShownHistograms => {
  const path = join(folder, histogramsFile);
  const none: ShownHistograms = { steps: [], shown: null };
  try {
    const facts = lstatSync(path);
    if (!facts.isFile() || facts.size > maxBytes) return none;
  } catch {
    return none;
  }
  const complete = new Set<number>();
  eachLine(path, (line) => {
    const [, type, step] = head.exec(line.toString("latin1", 0, 64)) ?? [];
    if (type === "complete") complete.add(Number(step));
  });
  const steps = [...complete].toSorted((a, b) => b - a);
  const step = requested !== undefined && complete.has(requested) ? requested : steps[0];
  if (step === undefined) return none;
  let [own, last] = [new Map<string, ParameterHistograms>(), new Map<string, ParameterHistograms>()];
  eachLine(path, (line) => {
    const [, type, of] = head.exec(line.toString("latin1", 0, 64)) ?? [];
    if (Number(of) !== step) return;
    if (type === "complete") [own, last] = [new Map(), own];
    else {
      const { data } = parameter.safeParse(parsed(line));
      if (data !== undefined) own.set(data.path, data);
    }
  });
  return { steps, shown: { step, parameters: [...last.values()] } };
};

const parsed = (line: Buffer): unknown => {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
};
