import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readMetricLines } from "./metric-lines.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-metrics-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "metrics.jsonl");
const line = (step: number): string => JSON.stringify({ type: "step", step, loss: 1 / step });

test("an incomplete last line is ignored", () => {
  writeFileSync(path, `${line(1)}\n${line(2)}\n${line(3).slice(0, 12)}`);
  expect(readMetricLines(path).map(({ step }) => step)).toEqual([1, 2]);
  writeFileSync(path, `${line(1)}\n${line(2)}`);
  expect(readMetricLines(path)).toHaveLength(2);
  writeFileSync(path, "");
  expect(readMetricLines(path)).toEqual([]);
});

test.each(["", "null", "7", `{"type":"step"}`, `{"step":3}`])("another malformed line, %j, is reported", (wrong) => {
  writeFileSync(path, `${line(1)}\n${wrong}\n${line(2)}\n`);
  expect(() => readMetricLines(path)).toThrow(/line 2 is not a line of metrics, an object with type and step/);
});
