import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Span } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { writeChromeTrace } from "./chrome-trace.ts";

test("spans become events of their rank's process and their stream's thread", () => {
  const span = (rank: number, stream: string, startSeconds: number): Span => ({
    name: "matmul dense",
    category: "compute",
    rank,
    stream,
    startSeconds,
    durationSeconds: 0.002,
    args: { flops: 8 },
  });
  const folder = mkdtempSync(join(tmpdir(), "skein-trace-"));
  try {
    const path = join(folder, "trace.json");
    writeChromeTrace(path, [span(0, "compute", 1), span(1, "compute", 1.5), span(0, "communication", 2), span(0, "compute", 3)]);
    const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: Record<string, unknown>[] };
    const complete = traceEvents.filter(({ ph }) => ph === "X");
    expect(complete[0]).toEqual({ name: "matmul dense", cat: "compute", ph: "X", pid: 0, tid: 1, ts: 1e6, dur: 2000, args: { flops: 8 } });
    expect(complete.map(({ pid, tid }) => [pid, tid])).toEqual([
      [0, 1],
      [1, 2],
      [0, 3],
      [0, 1],
    ]);
    expect(traceEvents.filter(({ ph }) => ph === "M").map(({ args }) => (args as { name: string }).name)).toEqual([
      "rank 0",
      "compute",
      "rank 1",
      "compute",
      "communication",
    ]);
    writeChromeTrace(path, []);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ displayTimeUnit: "ms", traceEvents: [] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
