import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Histogram, ParameterHistograms, StepHistograms } from "@skein/report";
import { z } from "zod";
import { eachLine } from "../files/each-line.ts";
import { histogramsFile } from "./histograms-file.ts";

/** What a page shows of the histograms of a run. */
export interface ShownHistograms {
  /** Those that are there, the newest first. */
  readonly steps: readonly number[];
  /** Of the step that was asked for, else of the newest. */
  readonly shown: StepHistograms | null;
}

/** A longer file is not read for a page. */
const mostBytes = 2 ** 30;
const mostBins = 1024;

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
  counts: z.array(size).max(mostBins),
});
const parameter: z.ZodType<ParameterHistograms> = z.object({
  path: z.string(),
  shape: z.array(size),
  weights: histogram,
  gradients: histogram.optional(),
});

/** The type and step of a line, without what makes it long. */
const head = /^\{"type":"(parameter|complete)","step":(\d{1,16}),/;

/**
 * Read histograms of a run. Steps of which not all parameters are there yet are passed over, as are lines that are none
 * of ours. Of a step that was taken twice the later counts. A file that is not there, is no file, or is too long gives
 * nothing.
 *
 * Cost: reads the whole file, and understands the lines of one step.
 * @param wanted a step. Default: the newest.
 */
export const readHistograms = (folder: string, wanted?: number): ShownHistograms => {
  const path = join(folder, histogramsFile);
  const none: ShownHistograms = { steps: [], shown: null };
  try {
    const facts = lstatSync(path);
    if (!facts.isFile() || facts.size > mostBytes) return none;
  } catch {
    return none;
  }
  const complete = new Set<number>();
  eachLine(path, (line) => {
    const [, type, step] = head.exec(line.toString("latin1", 0, 64)) ?? [];
    if (type === "complete") complete.add(Number(step));
  });
  const steps = [...complete].toSorted((a, b) => b - a);
  const step = wanted !== undefined && complete.has(wanted) ? wanted : steps[0];
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
