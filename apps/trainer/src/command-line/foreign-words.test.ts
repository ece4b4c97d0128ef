import { expect, test } from "vitest";
import { foreignWord } from "./foreign-words.ts";

test.each([
  ["error: unknown option '--lr'", "here it is --set learningRate.peak=0.1"],
  ["error: unknown option '--lr=0.1'", "here it is --set learningRate.peak=0.1"],
  ["error: unknown option '--batch_size'", "here it is --set batch=32"],
  ["error: unknown option '-lr'", "here it is --set learningRate.peak=0.1"],
  ["error: unknown command 'train'", "here it is skein-train run"],
  ["error: unknown command 'jobs/mine.yaml'", "a job file is trained by: skein-train run jobs/mine.yaml"],
  ["error: unknown option '--sett'", undefined],
  ["error: unknown command 'constructor'", undefined],
  ["error: unknown option '--constructor'", undefined],
  ["error: missing required argument 'job'", undefined],
])("%s: %s", (fault, said) => {
  expect(foreignWord(fault)).toBe(said);
});
