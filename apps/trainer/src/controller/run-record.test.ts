import type { Span } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { Failures } from "./failures.ts";
import { RunRecord, type RunRecordInput } from "./run-record.ts";

const span: Span = { name: "s", track: "steps", startSeconds: 0, endSeconds: 1 };

test("accepts a trace longer than an argument list may be", async () => {
  const record = new RunRecord({
    prepared: { job: { ranks: 1, model: { kind: "mlp" }, evaluation: {} } },
  } as RunRecordInput);
  const failures = new Failures();
  record.take(0, { type: "spans", spans: Array.from({ length: 300_000 }, () => span) }, failures);
  await expect(Promise.race([failures.first, Promise.resolve("no failure")])).resolves.toBe("no failure");
  expect(record.traces.map(({ spans }) => spans.length)).toEqual([300_000]);
});
