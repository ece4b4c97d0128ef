import { writeChromeTrace } from "@skein/run-files/node";
import { type RankSpans, type Span, type Track, tracks } from "@skein/tensor-core";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maxSpans, readTraceText, rowsOfSpans, windowsOf } from "./trace-view.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-trace-view-"));
afterAll(() => rmSync(folder, { recursive: true }));
const written = (ranks: readonly RankSpans[]): string => {
  const path = join(folder, "trace.json");
  writeChromeTrace(path, ranks, { job: "a", backend: "cpu", samplesPerStep: 1, madeAt: "2026-11-26T00:00:00.000Z" });
  return readFileSync(path, "utf8");
};
const span = (track: Track, name: string, from: number, to: number): Span => ({
  track,
  name,
  startSeconds: from,
  endSeconds: to,
});
const textOf = (seconds: number): string => `${Math.round(1000 * seconds)} ms`;

/** Two steps of two ranks, beginning at 5 s. A checkpoint between the steps is not part of a step. */
const ranks = [0, 1].map(
  (rank): RankSpans => ({
    rank,
    spans: [
      span("steps", "step 1", 5, 5.01),
      span("compute", "matmul", 5.001, 5.004 + rank / 1000),
      span("compute", "matmul", 5.006, 5.007),
      span("host", "save", 5.011, 5.02),
      span("steps", "step 2", 5.02, 5.05),
      span("compute", "matmul", 5.021, 5.03),
    ],
  }),
);

test("a trace opens with its whole range, and shows each step from its own start, the last first", () => {
  const view = readTraceText(written(ranks), "trace.json");
  const windows = windowsOf(view, textOf);
  expect(windows.map(({ title }) => title)).toEqual(["whole trace", "step 2, 30 ms", "step 1, 10 ms"]);
  const [all, , first] = windows.map((one) => one.ranks());
  expect(all!.map(({ spans }) => spans.length)).toEqual([6, 6]);
  expect(all![0]!.spans[0]!.startSeconds).toBe(0);
  expect(first!.map(({ spans }) => spans.map(({ name }) => name))).toEqual(
    [0, 1].map(() => ["step 1", "matmul", "matmul"]),
  );
  expect(first![1]!.spans[1]!.endSeconds).toBeCloseTo(0.005, 9);
});

test("a trace too long to draw at once is shown by steps, or without any by its last spans", () => {
  const many = Array.from({ length: maxSpans + 5 }, (_, i) => span("compute", "add", i / 1e6, (i + 0.5) / 1e6));
  const rank = { rank: 0, spans: many };
  const [last, ...others] = windowsOf(readTraceText(written([rank]), "t"), textOf);
  expect(others).toEqual([]);
  const shown = last!.ranks()[0]!.spans;
  expect([shown.length, shown[0]!.startSeconds]).toEqual([maxSpans, 0]);
  const stepped = { rank: 0, spans: [span("steps", "step 7", 0, 1), ...many] };
  expect(windowsOf(readTraceText(written([stepped]), "t"), textOf).map(({ key }) => key)).toEqual(["7"]);
});

test("totals of a timeline cover its whole time, even if names are left out", () => {
  const spans = fc.array(
    fc
      .tuple(fc.constantFrom(...tracks), fc.constantFrom("a", "b", "c", "d"), fc.nat(100), fc.nat(100))
      .map(([track, name, from, length]) => span(track, name, from, from + length)),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(fc.array(spans, { maxLength: 3 }), fc.integer({ min: 1, max: 5 }), (bySpans, most) => {
      const all = bySpans.map((own, rank) => ({ rank, spans: own }));
      const rows = rowsOfSpans(all, most);
      for (const { rank, spans: own } of all)
        for (const track of tracks) {
          const mine = own.filter((one) => one.track === track);
          const shownRows = rows.filter((row) => row.rank === rank && row.track === track);
          const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
          expect(sum(shownRows.map(({ calls }) => calls))).toBe(mine.length);
          expect(sum(shownRows.map(({ seconds }) => seconds))).toBe(
            sum(mine.map(({ startSeconds, endSeconds }) => endSeconds - startSeconds)),
          );
          expect(shownRows.length).toBeLessThanOrEqual(most + 1);
          const named = shownRows.slice(0, most).map(({ seconds }) => seconds);
          expect(named).toEqual(named.toSorted((a, b) => b - a));
        }
    }),
  );
});

test.each([
  ["", /^t: is empty/],
  ["{}", /^t: is JSON, but no trace/],
  [written(ranks).replace('"version":1', '"version":9'), /its version is 9/],
])("%j is reported in a line", (text, line) => {
  expect(() => readTraceText(text, "t")).toThrow(line);
});

test("a truncated trace shows what it has", () => {
  const text = written(ranks);
  const view = readTraceText(text.slice(0, text.lastIndexOf('"matmul"')), "t");
  expect([view.isCut, view.steps.map(([one]) => one!.number)]).toEqual([true, [1]]);
});
