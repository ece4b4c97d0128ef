import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJob, type ProfiledJob } from "skein-train/profiling";
import { afterAll, beforeAll } from "vitest";

/**
 * Creates a job file with four ranks over TCP in a temporary folder, which is removed after the test file.
 *
 * @param hidden Widths of the hidden layers.
 * @returns a function that opens the job with settings as for `--set`.
 */
export const tinyJob = (hidden: readonly number[]): ((...set: string[]) => Promise<ProfiledJob>) => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "skein-profile-test-"));
    writeFileSync(
      join(folder, "job.yaml"),
      `name: tiny
ranks: 4
transport: tcp
backend: cpu
batch: 64
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 200 }
model: { kind: mlp, hidden: [${hidden.join(", ")}] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
`,
    );
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return (...set) => openJob(join(folder, "job.yaml"), { set });
};
