import { ArgumentError } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { anyReport } from "../test/any-report.ts";
import { sampleReport } from "../test/sample-report.ts";
import { parseReport } from "./parse-report.ts";
import type { ProfileReport } from "./profile-report.ts";

test("round-trips a report", () => {
  const sample = sampleReport();
  expect(parseReport(JSON.stringify(sample), "a.json")).toEqual(sample);
  fc.assert(
    fc.property(anyReport, (report) => {
      const text = JSON.stringify(report); // The conversion to JSON drops undefined values and the sign of −0.
      expect(parseReport(text, "a.json")).toEqual(JSON.parse(text));
    }),
    { numRuns: 50 },
  );
});

const changed = (change: (report: { -readonly [key in keyof ProfileReport]: unknown }) => void): string => {
  const report = structuredClone(sampleReport()) as { -readonly [key in keyof ProfileReport]: unknown };
  change(report);
  return JSON.stringify(report);
};
const text = JSON.stringify(sampleReport());

test.each([
  ["nothing at all", "", /^run\.json: is not JSON, or was cut off \(/],
  ["a file that was cut off", text.slice(0, -100), /is not JSON, or was cut off/],
  [
    "something else",
    '{"format":"skein-links","version":1}',
    /is not a profile: its format is "skein-links", but must be "skein-profile"/,
  ],
  ["null", "null", /its format is missing/],
  ["a later version", changed((report) => (report.version = 2)), /its version is 2, but this program reads version 1/],
  [
    "a field that is missing",
    changed((report) => delete (report as Partial<typeof report>).job),
    /: job is missing: expected string/,
  ],
  [
    "a time that was no number",
    changed((report) => (report.step = { median: Number.NaN, mad: 0, n: 3 })),
    /: step\.median is null: expected number/,
  ],
  [
    "a step without time",
    changed((report) => (report.step = { median: 0, mad: 0, n: 3 })),
    /: step\.median is 0: Too small/,
  ],
  ["no step", changed((report) => (report.step = { median: 1, mad: 0, n: 0 })), /: step\.n is 0: Too small/],
  [
    "a negative size",
    changed((report) => (report.memory = { ...sampleReport().memory, residentBytes: -1 })),
    /: memory\.residentBytes is -1: Too small/,
  ],
  [
    "a share of more than all",
    changed((report) => (report.operators = [{ ...sampleReport().operators[0], share: 1.5 }])),
    /: operators\[0\]\.share is 1\.5: Too big/,
  ],
  [
    "a phase that there is not",
    changed((report) => (report.operators = [{ ...sampleReport().operators[0], phase: "sideways" }])),
    /: operators\[0\]\.phase is "sideways": /,
  ],
  [
    "a span that ends before it starts",
    changed(
      (report) =>
        (report.timeline = [{ rank: 0, spans: [{ name: "x", track: "compute", startSeconds: 2, endSeconds: 1 }] }]),
    ),
    /: timeline\[0\]\.spans\[0\] is \{.*…: ends at 1 s, before it starts at 2 s/,
  ],
  [
    "a value that dies before it is made",
    changed(
      (report) => (report.memory = { ...sampleReport().memory, blocks: [{ name: "x", bytes: 1, from: 5, to: 4 }] }),
    ),
    /: memory\.blocks\[0\] is .*: ends at node 4, before its first node 5/,
  ],
  [
    "a date that is none",
    changed((report) => (report.madeAt = "yesterday\nor so")),
    /: madeAt is "yesterday\\nor so": Invalid ISO datetime/,
  ],
])("refuses %s in one line that names the cure", (_, content, problem) => {
  let message = "";
  try {
    parseReport(content, "run.json");
  } catch (error) {
    expect(error).toBeInstanceOf(ArgumentError);
    ({ message } = error as Error);
  }
  expect(message).toMatch(problem);
  expect(message).toMatch(/^run\.json: [^\n]*; profile the job again with "skein-profile run"$/);
});
