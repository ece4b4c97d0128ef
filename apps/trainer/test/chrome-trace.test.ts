import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RankSpans, Span, Track } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rowNames, spansOn, type TraceEvent, traceFaults } from "./trace-rules.ts";
import { traceEvents, writeChromeTrace } from "@skein/run-files/node";

const span = (track: Track, startSeconds: number, endSeconds: number, more: Partial<Span> = {}): Span => ({
  name: "matmul dense",
  track,
  startSeconds,
  endSeconds,
  ...more,
});

const eventsOf = (ranks: readonly RankSpans[]): TraceEvent[] => [...traceEvents(ranks)] as unknown as TraceEvent[];

const facts = { job: "digits", backend: "cpu", samplesPerStep: 32, madeAt: "2026-11-23T09:30:00.000Z" };

test("spans become events of their rank's process and their track's thread, with their arguments", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-trace-"));
  try {
    const path = join(folder, "trace.json");
    writeChromeTrace(
      path,
      [
        {
          rank: 2,
          process: "host:17",
          spans: [span("waiting", 2, 2.5), span("compute", 1, 1.002, { args: { bytes: 8 } })],
        },
        { rank: 5, spans: [span("compute", 1.5, 1.6)] },
      ],
      facts,
    );
    const { traceEvents: events } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] };
    const kernel = {
      name: "matmul dense",
      cat: "compute",
      ph: "X",
      pid: 2,
      tid: 6,
      ts: 1e6,
      dur: 2000,
      args: { bytes: 8 },
    };
    expect(spansOn(events, 2, "compute")).toEqual([kernel]);
    expect([2, 5].map((rank) => rowNames(events, rank))).toEqual([["compute", "waiting"], ["compute"]]);
    expect(
      events.filter(({ name }) => name.startsWith("process_")).map(({ pid, args }) => [pid, Object.values(args)[0]]),
    ).toEqual([
      [2, "rank 2"],
      [2, 2],
      [2, "host:17"],
      [5, "rank 5"],
      [5, 5],
    ]);
    writeChromeTrace(path, [], facts);
    const otherData = { format: "skein-trace", version: 1, ...facts };
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ displayTimeUnit: "ms", otherData, traceEvents: [] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("two concurrent collectives are on two rows, even where one spans the other; host work is nested inside", () => {
  const times: readonly (readonly [Track, number, number])[] = [
    ["collectives", 1, 4],
    ["collectives", 2, 3],
    ["collectives", 3.5, 5],
    ["collectives", 4, 6],
    ["host", 2, 3],
    ["host", 1, 4],
  ];
  const events = eventsOf([{ rank: 0, spans: times.map(([track, start, end]) => span(track, start, end)) }]);
  expect(rowNames(events, 0)).toEqual(["host", "collectives", "collectives 2"]);
  const starts = (row: string): number[] => spansOn(events, 0, row).map(({ ts }) => ts / 1e6);
  expect([starts("collectives"), starts("collectives 2"), starts("host")]).toEqual([
    [1, 4],
    [2, 3.5],
    [1, 2],
  ]);
});

test("whatever overlaps, no row violates nesting, no span is lost, and a flow is bound at each of its parts", () => {
  // Times that rounding to nanoseconds may merge or reorder.
  const time = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((n) => n * 0.5e-9),
    fc.double({ min: 0, max: 1e-6, noNaN: true }),
  );
  const track = fc.constantFrom<Track>("host", "compute", "collectives", "waiting");
  const any = fc.tuple(track, time, time).map(([on, a, b]) => span(on, Math.min(a, b), Math.max(a, b)));
  const flow = fc.tuple(time, time, time, time).map((times) => {
    const [issued, begun, reached, done] = times.toSorted((a, b) => a - b) as [number, number, number, number];
    return (id: number): Span[] => [
      span("host", issued, begun, { flow: { id, part: "begin" } }),
      span("collectives", issued, done, { flow: { id, part: "through" } }),
      span("waiting", reached, done, { flow: { id, part: "end" } }),
    ];
  });
  fc.assert(
    fc.property(fc.array(any, { maxLength: 20 }), fc.array(flow, { maxLength: 8 }), (spans, flows) => {
      const own = [...spans, ...flows.flatMap((make, id) => make(id))];
      const events = eventsOf([
        { rank: 0, spans: own },
        { rank: 1, spans: own },
      ]);
      expect(traceFaults(events)).toEqual([]);
      expect(events.filter(({ ph, pid }) => ph === "X" && pid === 1)).toHaveLength(own.length);
      // A truncated trace is complete up to some time: first names, then spans in order of their begin.
      const times = events.filter(({ ph }) => ph !== "M").map(({ ts }) => ts);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(events.slice(-times.length || events.length).every(({ ph }) => ph !== "M")).toBe(true);
    }),
  );
});

test("a trace that violates the format is detected", () => {
  const [sound] = [
    eventsOf([
      {
        rank: 0,
        spans: [
          span("host", 0, 2, { flow: { id: 0, part: "begin" } }),
          span("waiting", 1, 3, { flow: { id: 0, part: "end" } }),
        ],
      },
    ]),
  ];
  expect(traceFaults(sound)).toEqual([]);
  const host = sound.find(({ cat }) => cat === "host")!;
  const without = (wrong: (event: TraceEvent) => boolean): TraceEvent[] => sound.filter((event) => !wrong(event));
  expect(traceFaults([...sound, { ...host, ts: 1e6, dur: 1.5e6 }])).toEqual([
    "row 0 1: matmul dense ends 500000000 ns after matmul dense, in which it begins",
  ]);
  expect(traceFaults([...sound, { ...host, ts: 9e6, dur: -1 }])).toContain("X matmul dense of 0 1: lasts -1 µs");
  expect(traceFaults(without(({ ph }) => ph === "f"))).toContain("flow 1 has 1 begins and 0 ends");
  expect(traceFaults(without(({ ph, cat }) => ph === "X" && cat === "waiting"))).toContain(
    "flow 1: no span is open where its f lies",
  );
  expect(traceFaults(without(({ name }) => name === "thread_name"))).toContain("0 1 has no thread_name");
});
