import { expect } from "vitest";
import { skeinTrain } from "./cli.ts";

/** Returns the settings of a job whose GPT learns noticeably in a few steps. */
export const smallGptJob = (batch: number): readonly string[] => [
  "data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}",
  `batch=${batch}`,
  `evaluation.batch=${batch}`,
  "compression={kind: identity}",
  "optimizer={kind: adamw}",
  "learningRate={peak: 0.01, warmupSteps: 3}",
  "clipNorm=0.5",
  "checkpoint.keep=10",
];

/** Converts settings of a job to command-line arguments. */
export const settings = (values: readonly string[]): string[] => values.flatMap((value) => ["--set", value]);

/** Runs skein-train, and expects that no rank failed during the run. */
export const runSoundly = async (folder: string, ...args: readonly string[]): Promise<void> => {
  const { code, stderr } = await skeinTrain(folder, ...args);
  expect(stderr).not.toContain("rank ");
  expect(code, stderr).toBe(0);
};
