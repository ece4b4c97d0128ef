import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeChromeTrace } from "@skein/run-files/node";
import type { Span, Track } from "@skein/tensor-core";

/** A run name with HTML, as another tool could have written it. */
export const hostileName = `<script>window.stolen=1</script><img src=x onerror="window.stolen=2">`;

/** Returns step lines similar to the step lines of an MNIST run. */
export const sampleLines = (from: number, to: number, seed = 1): string => {
  let text = "";
  for (let step = from + 1; step <= to; step++) {
    const noise = Math.sin(step * 12.9898 * seed) * 0.5 + 0.5;
    const loss = 2.3 * Math.exp(-step / (100 + 60 * seed)) + 0.1 + 0.08 * noise;
    const seconds = 0.05 + 0.01 * noise;
    const lines: object[] = [
      {
        type: "step",
        step,
        epoch: 1 + Math.floor((step - 1) / 100),
        loss,
        seconds,
        samplesPerSecond: 64 / seconds,
        exposedSeconds: 0.01 * noise,
        dataSeconds: 0.002 * noise,
        residentBytes: 3e8 + 1e5 * step,
        "block-1.load_E.0": 10 + (step % 7),
        "block-1.load_E.1": 12 + (step % 5),
      },
      { type: "update", step, gradientNorm: 1 / step, learningRate: 1e-3 * Math.min(1, step / 50) },
    ];
    if (step % 20 === 0)
      for (const rank of [0, 1])
        lines.push({ type: `rank-${rank}`, step, seconds, ownSeconds: seconds - 0.01 * (rank + noise) });
    if (step % 50 === 0)
      lines.push({ type: "evaluation", step, loss: loss + 0.05, accuracy: 1 - 0.9 * Math.exp(-step / 150) });
    text += lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  }
  return text;
};

/** Writes a run into a folder, up to step `steps`. */
export const writeSampleRun = (folder: string, steps: number, job: object, seed = 1): void => {
  mkdirSync(join(folder, "checkpoints/step-00000100"), { recursive: true });
  writeFileSync(join(folder, "job.json"), JSON.stringify(job));
  writeFileSync(join(folder, "metrics.jsonl"), sampleLines(0, steps, seed));
};

export const growSampleRun = (folder: string, from: number, to: number, seed = 1): void =>
  appendFileSync(join(folder, "metrics.jsonl"), sampleLines(from, to, seed));

/**
 * Writes a trace of a few steps of two ranks into the folder of a run. The trace contains a name with HTML, as if
 * written by another tool.
 */
export const writeSampleTrace = (folder: string, steps: number): void => {
  const spansOf = (rank: number): Span[] =>
    Array.from({ length: steps }, (_, step) => step).flatMap((step) => {
      const at = (ms: number): number => (12 * step + ms) / 1000;
      const span = (track: Track, name: string, from: number, to: number, args: Span["args"] = {}): Span => ({
        track,
        name,
        startSeconds: at(from),
        endSeconds: at(to),
        args,
      });
      return [
        span("steps", `step ${step + 1}`, 0, 11),
        span("data", "next batch", 0, 1),
        span("compute", "matmul layer-1", 1, 4 + rank, { phase: "forward" }),
        span("compute", `matmul ${hostileName}`, 4 + rank, 6 + rank, { phase: "backward" }),
        span("collectives", "all-reduce bucket-0", 5, 8, { bytes: 4096 }),
        span("collectives", "all-reduce bucket-1", 6, 9, { bytes: 8192 }),
        span("waiting", "wait all-reduce bucket-1", 7, 9),
        span("compute", "fused update", 9, 10, { phase: "update" }),
      ];
    });
  writeChromeTrace(
    join(folder, "trace.json"),
    [0, 1].map((rank) => ({ rank, process: `host:${rank}`, spans: spansOf(rank) })),
    { job: "mnist", backend: "cpu", samplesPerStep: 64, madeAt: "2026-11-26T00:00:00.000Z" },
  );
};
