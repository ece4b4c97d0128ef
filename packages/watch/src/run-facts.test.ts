import { factsOf, MetricTail, type RunFacts, type RunFiles, stateOf } from "@skein/run-files/node";
import { expect, test } from "vitest";
import { formatRuns } from "./runs-command.ts";

const none: RunFiles = {
  options: {},
  summary: undefined,
  summaryWrittenAt: undefined,
  provenance: undefined,
  faults: [],
};
const now = 1e12;

test.each<[string, number, Partial<RunFiles>, number]>([
  ["running", 5, {}, 0.1],
  ["stopped", 61, {}, 0.1],
  ["running", 200, {}, 30], // ten steps of the run take longer
  ["stopped", 400, {}, 30],
  ["finished", 400, { summaryWrittenAt: now - 400_000 }, 1],
  ["running", 5, { summaryWrittenAt: now - 400_000 }, 1], // the run was resumed after its summary was written
  ["running", 9_999, { provenance: { host: "here", pid: process.pid } }, 1], // its process is alive
  ["stopped", 1, { provenance: { host: "here", pid: 2 ** 22 + 12_345 } }, 1], // the process was killed
  ["running", 1, { provenance: { host: "there", pid: 2 ** 22 + 12_345 } }, 1],
  ["failed", 1, { provenance: { host: "here", pid: process.pid, ended: { how: "failed", reason: "x" } } }, 1],
  ["running", 1, { provenance: { host: "here", pid: -1, ended: "nonsense" } }, 1],
])("%s: silent for %d s, %j, steps of %d s", (state, silence, files, stepSeconds) => {
  expect(stateOf({ writtenAt: now - 1000 * silence }, { ...none, ...files }, stepSeconds, now, "here").state).toBe(
    state,
  );
});

const facts = (id: string, options: Readonly<Record<string, string>>): RunFacts => ({
  ...factsOf(id, new MetricTail(), { ...none, options }, now, "here"),
  loss: 0.123456,
});

test("a list of runs has their differences, in lines of the terminal's width", () => {
  const runs = [
    facts("mnist/1", { batch: "64", kind: "a" }),
    facts("\u001b[31m\nmnist/2", { batch: "128", kind: "a" }),
  ];
  const lines = formatRuns(runs, 120);
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/^run +state +step +loss .*batch/);
  expect(lines[0]).not.toContain("kind");
  expect(lines[1]).toMatch(/mnist\/1 .* 0\.1235 .* 64/);
  expect(lines.join("\n")).not.toContain("\u001b");
  for (const line of formatRuns(runs, 40)) expect(line.length).toBeLessThanOrEqual(40);
});
