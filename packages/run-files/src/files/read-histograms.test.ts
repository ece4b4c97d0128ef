import { appendFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ParameterHistograms } from "@skein/report";
import { NdArray } from "@skein/tensor-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { countValues, histogramOf, rangeOf } from "./histogram.ts";
import { HistogramsFile, histogramsFile } from "./histograms-file.ts";
import { readHistograms } from "./read-histograms.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-histograms-file-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const parameter = (path: string, values: readonly number[]): ParameterHistograms => {
  const array = NdArray.from(values, [values.length]);
  const weights = histogramOf(countValues(array, rangeOf(array)), rangeOf(array));
  return { path, shape: array.shape, weights, ...(path === "b" && { gradients: weights }) };
};
const parameters = (scale: number): ParameterHistograms[] => [
  parameter("a", [scale, 0, Number.NaN]),
  parameter("b", [scale]),
];

test("reads recorded histograms, written in any number of pieces; the newest step unless another is requested", () => {
  const file = new HistogramsFile(folder);
  expect(readHistograms(folder)).toEqual({ steps: [], shown: null });
  file.record(10, parameters(1).slice(0, 1), false);
  expect(readHistograms(folder)).toEqual({ steps: [], shown: null });
  file.record(10, parameters(1).slice(1), true);
  file.record(20, parameters(2), true);
  expect(readHistograms(folder)).toEqual({ steps: [20, 10], shown: { step: 20, parameters: parameters(2) } });
  expect(readHistograms(folder, 10).shown).toEqual({ step: 10, parameters: parameters(1) });
  expect(readHistograms(folder, 11).shown!.step).toBe(20);
});

test("a resumed run records its step again, and damaged or truncated lines are skipped", () => {
  const file = new HistogramsFile(folder);
  for (const step of [0, 10, 20]) file.record(step, parameters(1), true);
  file.record(30, parameters(1), false);
  appendFileSync(join(folder, histogramsFile), '{"type":"parameter","step":30,"pa');
  file.rewind(10);
  expect(readHistograms(folder).steps).toEqual([0]);
  file.record(10, parameters(5), true);
  file.record(10, parameters(7), true); // requested twice before one step
  expect(readHistograms(folder).shown).toEqual({ step: 10, parameters: parameters(7) });
  appendFileSync(
    join(folder, histogramsFile),
    'null\n[]\n{"type":"parameter","step":10,"path":3}\n{"type":"parameter","step":"x","path":"a"}\n{"type":"complete","step":10}\n',
  );
  expect(readHistograms(folder).shown).toEqual({ step: 10, parameters: parameters(7) });
});

test("a link out of the folder is not followed", () => {
  const elsewhere = join(folder, "elsewhere.jsonl");
  writeFileSync(elsewhere, '{"type":"complete","step":1,"parameters":0}\n');
  symlinkSync(elsewhere, join(folder, histogramsFile));
  expect(readHistograms(folder).steps).toEqual([]);
});
