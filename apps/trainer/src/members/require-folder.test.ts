import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeFiles } from "@skein/cli/node";
import { parseJob, parseOverride } from "@skein/job/node";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { requireFolderOf } from "./require-folder.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-folder-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const jobOf = (...settings: readonly string[]): ReturnType<typeof parseJob> =>
  parseJob(
    `name: digits
ranks: 2
batch: 64
steps: 1
data: {kind: moby-dick, window: 8}
model: {kind: gpt, layers: 1, heads: 2, width: 8}
optimizer: {kind: adamw}
learningRate: {peak: 0.002}
`,
    "job.yaml",
    settings.map(parseOverride),
  );
const dense = { job: jobOf(), ownLeaves: new Map() };
const assigned = (resume?: string) => ({
  output: join(folder, "elsewhere"),
  mark: ".mark-1",
  resume: resume === undefined ? undefined : { folder: resume, step: 1, files: [], best: undefined },
});

test("a rank that writes nothing needs no folder", async () => {
  await requireFolderOf(nodeFiles, assigned(), dense, [1]);
});

test.each([
  ["rank 0, which writes what all share", dense, [0]],
  [
    "a rank with residuals",
    { ...dense, ownLeaves: new Map([["residuals.0", { dtype: "f32", shape: [] } as const]]) },
    [1],
  ],
  ["a rank with a shard", { ...dense, job: jobOf("mesh={tensor: 2}") }, [1]],
])("%s needs it", async (_, prepared, ranks) => {
  vi.useFakeTimers({ toFake: ["setTimeout"] }); // the check is retried for a while
  const refused = requireFolderOf(nodeFiles, assigned(), prepared, ranks).catch((error: Error) => error.message);
  await vi.runAllTimersAsync();
  vi.useRealTimers();
  expect(await refused).toContain("does not see the folder");
});

test("a rank that writes nothing resumes from a copy of the checkpoint", async () => {
  const checkpoint = join(folder, "elsewhere", "checkpoints", "step-00000001");
  await expect(requireFolderOf(nodeFiles, assigned(checkpoint), dense, [1])).rejects.toThrow(
    `does not see the checkpoint ${checkpoint} from which the run resumes; copy that folder there under the same path`,
  );
  mkdirSync(checkpoint, { recursive: true });
  writeFileSync(join(checkpoint, "manifest.json"), "");
  await requireFolderOf(nodeFiles, assigned(checkpoint), dense, [1]);
});
