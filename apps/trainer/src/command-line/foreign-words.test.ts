import { expect, test } from "vitest";
import { foreignWord } from "./foreign-words.ts";

test.each([
  ["error: unknown option '--lr'", "use --set learningRate.peak=0.1"],
  ["error: unknown option '--lr=0.1'", "use --set learningRate.peak=0.1"],
  ["error: unknown option '--batch_size'", "use --set batch=32"],
  ["error: unknown option '-lr'", "use --set learningRate.peak=0.1"],
  ["error: unknown command 'train'", "use skein-train run"],
  ["error: unknown command 'jobs/mine.yaml'", "to train a job file: skein-train run jobs/mine.yaml"],
  ["error: unknown option '--sett'", undefined],
  ["error: unknown command 'constructor'", undefined],
  ["error: unknown option '--constructor'", undefined],
  ["error: missing required argument 'job'", undefined],
])("%s: %s", (fault, suggestion) => {
  expect(foreignWord(fault)).toBe(suggestion);
});
