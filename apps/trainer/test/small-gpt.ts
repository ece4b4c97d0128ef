import { expect } from "vitest";
import { skeinTrain } from "./cli.ts";

/** Settings of a job whose GPT learns something in a few steps. */
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

/** Settings of a job as arguments. */
export const settings = (values: readonly string[]): string[] => values.flatMap((value) => ["--set", value]);

/** Run skein-train; expects that no rank failed on the way. */
export const runSoundly = async (folder: string, ...args: readonly string[]): Promise<void> => {
  const { code, stderr } = await skeinTrain(folder, ...args);
  expect(stderr).not.toContain("rank ");
  expect(code, stderr).toBe(0);
};
