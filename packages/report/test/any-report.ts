import fc from "fast-check";
import { phases } from "@skein/tensor-core/backend";
import type { ProfileReport } from "../src/profile-report.ts";

/** Generates names as users or attackers may write them. */
const name = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom(
    "matmul",
    "block-0/attention",
    "",
    "衰减/前馈网络/注意力",
    "</script><img src=x onerror=1>",
    'a"b,c\r\nd',
    "\u001B[31mred\u0007",
    "x".repeat(300),
  ),
);
const amount = fc.oneof(fc.double({ min: 0, max: 1e12, noNaN: true }), fc.constant(0));
const count = fc.nat({ max: 300 });
const times = fc.record({ median: amount, mad: amount, n: fc.integer({ min: 1, max: 99 }) });
const share = fc.double({ min: 0, max: 1, noNaN: true });
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

const span = fc
  .record({
    name,
    track: fc.constantFrom(
      "steps" as const,
      "data" as const,
      "host" as const,
      "compute" as const,
      "collectives" as const,
      "waiting" as const,
    ),
    startSeconds: fc.double({ min: -1, max: 100, noNaN: true }),
    seconds: fc.double({ min: 0, max: 100, noNaN: true }),
    args: fc.record({ operator: name, scope: name, phase: fc.constantFrom(...phases), bytes: amount }),
  })
  .map(({ seconds, ...one }) => ({ ...one, endSeconds: one.startSeconds + seconds }));
const ranks = fc.array(fc.record({ rank: count, process: maybe(name), spans: fc.array(span, { maxLength: 6 }) }), {
  maxLength: 3,
});
const block = fc
  .record({ name, shape: maybe(name), bytes: amount, from: count, length: count })
  .map(({ length, ...one }) => ({ ...one, to: one.from + length }));

/** Generates keys of a job, except `__proto__`, which the schema ignores and no job has. */
const key = name.filter((text) => text !== "__proto__");

/**
 * Generates reports that the schema accepts, including empty, hostile and inconsistent reports, and unrealistic
 * numbers.
 */
export const anyReport: fc.Arbitrary<ProfileReport> = fc.record({
  format: fc.constant("skein-profile" as const),
  version: fc.constant(1 as const),
  job: name,
  madeAt: fc.constant("2026-11-23T09:30:00Z"),
  machine: name,
  backend: name,
  ranks: fc.integer({ min: 1, max: 999 }),
  steps: fc.integer({ min: 1, max: 999 }),
  warmUpSteps: count,
  samplesPerStep: amount,
  step: fc.record({
    median: fc.double({ min: 1e-9, max: 1e9, noNaN: true }),
    mad: amount,
    n: fc.integer({ min: 1, max: 99 }),
  }),
  exposedSeconds: times,
  predictedStepSeconds: maybe(amount),
  device: maybe(
    fc.record({
      name,
      flopsPerSecond: fc.double({ min: 1, max: 1e16, noNaN: true }),
      bytesPerSecond: fc.double({ min: 1, max: 1e14, noNaN: true }),
    }),
  ),
  operators: fc.array(
    fc.record({
      operator: name,
      scope: name,
      phase: fc.constantFrom(
        "forward" as const,
        "backward" as const,
        "update" as const,
        "communication" as const,
        "other" as const,
      ),
      calls: count,
      seconds: times,
      share,
      flops: maybe(amount),
      bytes: maybe(amount),
      rooflineSeconds: maybe(amount),
      boundBy: maybe(fc.constantFrom("flops" as const, "bytes" as const)),
      predictedSeconds: maybe(amount),
    }),
    { maxLength: 14 },
  ),
  outside: fc.array(
    fc.record({
      kind: fc.constantFrom("waiting" as const, "data" as const, "host" as const, "between" as const),
      seconds: times,
      share,
    }),
    { maxLength: 4 },
  ),
  clock: maybe(name),
  collectives: fc.array(
    fc.record({
      name,
      kind: name,
      axis: name,
      algorithm: maybe(name),
      bytes: amount,
      seconds: times,
      exposedSeconds: times,
      predictedSeconds: maybe(amount),
    }),
    { maxLength: 12 },
  ),
  memory: maybe(
    fc.record({
      residentBytes: amount,
      liveBytes: fc.array(amount, { maxLength: 9 }),
      workspaceBytes: amount,
      blocks: fc.array(block, { maxLength: 9 }),
    }),
  ),
  timeline: ranks,
  predicted: maybe(ranks),
  advice: fc.array(
    fc.record({
      finding: name,
      cure: maybe(name),
      change: maybe(fc.dictionary(key, fc.oneof(name, count), { maxKeys: 3 })),
      saves: maybe(share),
      basis: name,
    }),
    { maxLength: 3 },
  ),
});
