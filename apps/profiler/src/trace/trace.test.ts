import { parseTrace, type ReadTrace } from "@skein/report";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ArgumentError, type RankSpans } from "@skein/tensor-core";
import fc from "fast-check";
import { writeChromeTrace } from "skein-train/profiling";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { madeUpRun, span } from "../profile/made-up-run.ts";
import { readTrace, runTraceFacts } from "./read-trace.ts";
import { cutLine, traceSteps } from "./trace-steps.ts";

const facts = {
  job: "digits",
  backend: "cpu",
  samplesPerStep: 32,
  madeAt: "2026-11-23T09:30:00.000Z",
  plan: { buckets: [["head.weight", "head.bias"], ["层.0"]] },
};

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-trace-"))));
afterAll(() => rmSync(folder, { recursive: true }));

const written = (ranks: readonly RankSpans[]): Buffer => {
  writeChromeTrace(join(folder, "trace.json"), ranks, facts);
  return readFileSync(join(folder, "trace.json"));
};

/** Splits text into lines as `readLines` does. */
const linesOf = (bytes: Uint8Array): string[] => {
  const lines = new TextDecoder().decode(bytes).split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
};
const parsed = (bytes: Uint8Array): ReadTrace => parseTrace(linesOf(bytes), runTraceFacts, "t.json");

/** Returns a run whose names contain multi-byte characters, with flows between spans. */
const run = (numRanks: number): RankSpans[] =>
  madeUpRun(numRanks).map(({ spans, ...rank }) => ({
    ...rank,
    spans: spans.map((one, i) => {
      const part = ({ collectives: "begin", waiting: "end" } as const)[one.track as string];
      return {
        ...one,
        name: one.name.replace("layer", "层-é"),
        ...(part && { flow: { id: Math.floor(i / 9), part } }),
      };
    }),
  }));

test("round-trips spans, ranks, processes, flows and facts", () => {
  const bytes = written(run(2));
  const read = parsed(bytes);
  expect([read.facts, read.cut]).toEqual([facts, undefined]);
  const original = run(2);
  for (const [i, { rank, process, spans }] of original.entries()) {
    expect(read.ranks[i]).toMatchObject({ rank, process });
    const inTime = spans.toSorted((a, b) => a.startSeconds - b.startSeconds);
    expect(read.ranks[i]!.spans.map(({ name, track }) => `${track} ${name}`).toSorted()).toEqual(
      inTime.map(({ name, track }) => `${track} ${name}`).toSorted(),
    );
  }
  expect(written(read.ranks).equals(bytes)).toBe(true);
});

test("round-trips any spans, and reads a file of many lines in chunks", () => {
  const seconds = fc.integer({ min: -1e9, max: 1e12 }).map((n) => n / 1e9);
  const spans = fc.array(
    fc
      .tuple(
        fc.constantFrom("steps", "data", "host", "compute", "collectives", "waiting"),
        fc.string(),
        seconds,
        fc.nat(1e9),
      )
      .map(([track, name, start, length]) => ({
        ...span(track, name, 0, 0),
        startSeconds: start,
        endSeconds: start + length / 1e9,
      })),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(fc.array(spans, { minLength: 1, maxLength: 3 }), (bySpans) => {
      const ranks = bySpans.map((own, rank) => ({ rank, spans: own }));
      const bytes = written(ranks);
      const read = parsed(bytes);
      expect(read.ranks.map((one) => one.spans.length)).toEqual(ranks.map((one) => one.spans.length));
      expect(written(read.ranks).toString()).toBe(bytes.toString());
    }),
    { numRuns: 60 },
  );
  const many = Array.from({ length: 9000 }, (_, i) =>
    span("compute", `matmul block-${i % 7}/层/feed-forward/backward`, i, i + 0.5),
  );
  const bytes = written([{ rank: 0, spans: many }]);
  expect(bytes.length).toBeGreaterThan(2 ** 20);
  expect(readTrace(join(folder, "trace.json"))).toEqual(parsed(bytes));
});

describe("a trace that was cut off", () => {
  /**
   * Returns the number of complete steps in a truncated trace. A step is complete if all ranks ended it before the last
   * complete event begins.
   */
  const wholeBefore = (whole: ReadTrace, cut: Uint8Array): number => {
    const times = linesOf(cut)
      .filter((line) => /\}\]?,?$/.test(line) && line.includes('"ts":'))
      .flatMap((line) => {
        try {
          return [(JSON.parse(line.replace(/,$/, "")) as { ts: number }).ts];
        } catch {
          return [];
        }
      });
    const reached = Math.max(-Infinity, ...times) / 1e6;
    return traceSteps(whole, "t.json").filter((ranks) => ranks.every((step) => step.whole.endSeconds <= reached))
      .length;
  };

  test("at any byte gives the steps that ended before, equal to those of the whole trace, or a one-line error", () => {
    for (const numRanks of [1, 2]) {
      const bytes = written(run(numRanks));
      const whole = parsed(bytes);
      const steps = traceSteps(whole, "t.json");
      const seen = new Set<number>();
      fc.assert(
        fc.property(fc.integer({ min: 0, max: bytes.length }), (length) => {
          const cut = bytes.subarray(0, length);
          const isWhole = /\n\]\}?\n?$/.test(cut.toString());
          let read: ReadTrace;
          let left: ReturnType<typeof traceSteps>;
          try {
            read = parsed(cut);
            left = traceSteps(read, "t.json");
          } catch (error) {
            expect(error).toBeInstanceOf(ArgumentError);
            expect((error as Error).message).toMatch(/^t\.json: (is empty|was cut off before [^\n]*);[^\n]*$/);
            expect(wholeBefore(whole, cut)).toBe(0);
            return;
          }
          const count = isWhole ? steps.length : wholeBefore(whole, cut);
          expect(left).toEqual(steps.slice(0, count));
          expect(cutLine(read, left, "t.json") === undefined).toBe(isWhole);
          seen.add(count);
        }),
        { numRuns: 200 },
      );
      expect([...seen].toSorted()).toEqual([1, 2, 3]);
    }
  });

  test("gives a one-line message with the events read and the incomplete step", () => {
    const bytes = written(run(2));
    const cut = bytes.subarray(0, bytes.lastIndexOf("wait all-reduce"));
    const read = parsed(cut);
    expect(cutLine(read, traceSteps(read, "t.json"), "t.json")).toMatch(
      /^t\.json was cut off: \d+ events were read, up to 0\.031 s; 2 steps are complete; step 3 had started and is left out$/,
    );
  });
});

const own = `{"displayTimeUnit":"ms","otherData":${JSON.stringify({ format: "skein-trace", version: 1, ...facts })},"traceEvents":[`;
const event = '{"name":"step 1","cat":"steps","ph":"X","pid":0,"tid":1,"ts":0,"dur":5}';

test.each([
  ["nothing", "", /^t\.json: is empty;/],
  ["a number", "42", /is JSON, but no trace: it has no traceEvents/],
  ["null", "null", /is JSON, but no trace/],
  ["a job file", "name: tiny\nranks: 2\n", /is not JSON, or is a cut-off trace of another program/],
  ["a report", '{"format":"skein-profile","version":1}', /is JSON, but no trace/],
  [
    "a list of events",
    '[{"name":"main","ph":"B","pid":1,"tid":1,"ts":0}]',
    /is a trace that another program has written;/,
  ],
  [
    "a browser's trace",
    '{"traceEvents":[{"name":"RunTask","cat":"toplevel","ph":"X"}]}',
    /is a trace that another program has written;/,
  ],
  [
    "a later version",
    own.replace('"version":1', '"version":2') + "\n]}",
    /its version is 2, but this program reads version 1/,
  ],
  ["a name that leaves the folder", own.replace("digits", "../x") + "\n]}", /otherData\.job a name is made of letters/],
  ["no step", `${own}\n]}\n`, /has no step that all its ranks completed/],
  [
    "an event of others",
    `${own}\n{"name":"x","ph":"B","pid":0}\n]}`,
    /event 1, .*"B".*, is not one that skein-train or skein-profile writes/,
  ],
  [
    "a time that is none",
    `${own}\n${event.replace('"dur":5', '"dur":-5')}\n]}`,
    /event 1, .*is not one that skein-train or skein-profile writes \(dur /,
  ],
  ["an event that is damaged", `${own}\n${event.slice(0, -9)},\n${event}\n]}`, /event 1 is damaged/],
  ["what would clear a screen", "\u001B[2Jx", /is not JSON, or is a cut-off trace/],
  ["two files in one", `${own}\n${event}\n]}\n${own}\n${event}\n]}\n`, /continues after its end/],
  [
    "a flow without a span",
    `${own}\n{"name":"collective","ph":"s","id":1,"pid":0,"tid":1,"ts":3}\n]}`,
    /flow 1, does not follow its span/,
  ],
  [
    "a cut trace in no order",
    `${own}\n${event.replace('"ts":0', '"ts":9')},\n${event},\n`,
    /its spans are not in order of begin/,
  ],
])("%s is refused in one line", (_, text, words) => {
  const read = (): unknown => traceSteps(parsed(Buffer.from(text)), "t.json");
  expect(read).toThrow(words);
  expect(read).toThrow(
    /^\P{Cc}{1,500}; give the trace\.json of a profile, or a file written by skein-train run --trace$/u,
  );
});

test("reads a trace of ours that another program has reformatted", () => {
  const bytes = written(run(1));
  const pretty = JSON.stringify(JSON.parse(bytes.toString()), undefined, 2);
  expect(parsed(Buffer.from(pretty))).toEqual(parsed(bytes));
});

test("reports an unreadable file in one line", () => {
  expect(() => readTrace(join(folder, "none.json"))).toThrow(
    /none\.json cannot be read \(ENOENT[^\n]*\); give a readable trace/,
  );
  expect(() => readTrace(folder)).toThrow(/cannot be read \(EISDIR/);
  writeFileSync(join(folder, "zeros.json"), new Uint8Array(5000));
  expect(() => readTrace(join(folder, "zeros.json"))).toThrow(/is not JSON/);
});
