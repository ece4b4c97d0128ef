import { checkJob } from "@skein/job/node";
import { type RunEvent, WaitingEvents } from "@skein/run-files/node";
import { expect, test } from "vitest";
import type { Prepared } from "../preparation/prepared.ts";
import { RankReport } from "../rank/rank-report.ts";
import { Failures } from "./failures.ts";
import { RunRecord } from "./run-record.ts";

/** Counts the objects, list entries, map entries and set entries reachable from a value. */
const reachable = (root: unknown): number => {
  const seen = new Set<object>();
  const queue: unknown[] = [root];
  let count = 0;
  while (queue.length > 0) {
    const value = queue.pop();
    count++;
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (value instanceof Map) queue.push(...value.keys(), ...value.values());
    if (value instanceof Set) queue.push(...value);
    if (ArrayBuffer.isView(value)) count += value.byteLength;
    else queue.push(...Object.values(value));
  }
  return count;
};

const ranks = 2;
const job = checkJob(
  {
    name: "long",
    ranks,
    batch: 4,
    steps: 100_000,
    data: { kind: "mnist" },
    model: { kind: "mlp" },
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.1 },
  },
  { file: "job.yaml" },
);

test("memory of a run does not grow with its steps, evaluations and consumed events", () => {
  const waiting = new WaitingEvents<RunEvent>();
  const failures = new Failures();
  const sinks = { record: () => {}, histograms: () => {}, rewind: () => {}, close: () => {} };
  const record = new RunRecord({
    prepared: { job, totalSteps: 100_000, data: { predicts: "classes" }, model: {} } as unknown as Prepared,
    output: "/nowhere",
    metrics: sinks,
    progress: { update: () => {}, note: () => {}, close: () => {} },
    cutShort: () => {},
    happened: (event) => waiting.add(event),
  });
  const reports = Array.from(
    { length: ranks },
    (_, rank) => new RankReport(rank, ranks, (message) => record.take(rank, message, failures)),
  );
  const costs = { seconds: 0.001, exposedSeconds: 0, dataSeconds: 0, bytesSent: 8 };
  let step = 0;
  const goOn = (steps: number): number => {
    for (const end = step + steps; step < end; ) {
      step++;
      for (const report of reports) {
        report.stepped(step, { epoch: 0 } as never, { loss: 1 } as never, costs);
        report.updated(step, { learningRate: 0.1 } as never);
        if (step % 50 === 0) report.evaluated(step, { lossSum: 1, count: 4 }, 0.1);
        if (step % 50 === 0) report.sampled(step, []);
      }
      while (waiting.take() !== undefined);
    }
    return reachable([record, reports, waiting, failures]);
  };
  const early = goOn(1000);
  expect(record.step).toBe(1000);
  expect(goOn(10_000)).toBe(early);
});
