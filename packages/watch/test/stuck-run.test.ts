import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { WatchedRuns } from "../src/watched-runs.ts";
import { afterAll, expect, test } from "vitest";

const root = mkdtempSync(join(tmpdir(), "skein-stuck-"));
afterAll(() => rmSync(root, { recursive: true }));
const step = (number: number): string => `{"type":"step","step":${number}}\n`;
for (const id of ["a", "fallen", "stuck", "z"]) {
  mkdirSync(join(root, id));
  writeFileSync(join(root, id, "metrics.jsonl"), step(1));
}

test("a run that blocks or ends its reader is skipped for a while, and the others are still read", async () => {
  let starts = 0;
  const runs = new WatchedRuns(root, {
    deadline: 3000,
    start: (folder) => {
      starts++;
      return new Worker(new URL("./stuck-loader-thread.ts", import.meta.url), { workerData: folder });
    },
  });
  try {
    await runs.find();
    await Promise.all(runs.ids.map((id) => runs.look(id)));
    const faults = (): unknown[] => ["a", "fallen", "stuck", "z"].map((id) => runs.factsOf(id)!.fault);
    const expectedFaults = [
      null,
      "fallen; the next attempt is in 10 s",
      "reading takes longer than 3 s; the next attempt is in 10 s",
      null,
    ];
    expect(faults()).toEqual(expectedFaults);
    expect(starts).toBe(3);
    appendFileSync(join(root, "z/metrics.jsonl"), step(2));
    for (const id of runs.ids) await runs.look(id);
    expect(runs.factsOf("z")!.step).toBe(2);
    expect(faults()).toEqual(expectedFaults);
    expect(starts).toBe(3); // the page has not requested the runs again
  } finally {
    await runs.close();
  }
  await expect(runs.find()).rejects.toThrow("the page is closing");
});

test("a reader that is blocked forever is ended with the page", async () => {
  const runs = new WatchedRuns(root, {
    deadline: 1e9,
    start: (folder) => new Worker(new URL("./stuck-loader-thread.ts", import.meta.url), { workerData: folder }),
  });
  await runs.find();
  const looking = runs.look("stuck");
  await new Promise((resolve) => setTimeout(resolve, 50)); // the thread is blocked by now, or will be soon
  await runs.close();
  expect((await looking)!.fault).toMatch(/^the page is closing/);
});
