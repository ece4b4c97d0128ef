import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { MetricFiles } from "@skein/run-files/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";
import { Interruption } from "../src/processes/interruption.ts";
import { runWithRestarts } from "../src/controller/run-with-restarts.ts";
import { threadRunner } from "../src/controller/thread-runner.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { checkpointNames, jobFolder } from "./cli.ts";
import { faultyRank } from "./faulty-rank.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const from = (path: string, value: unknown): { path: string[]; value: unknown; origin: string } => ({
  path: path.split("."),
  value,
  origin: "test",
});

describe.each([
  ["wait-free", { tags: "full" }],
  ["dear", {}],
])("with overlap %s", (overlap, options) => {
  test(
    "a bit flip on one rank stops the run at the next comparison, with its name, and nothing of it is saved",
    options,
    async () => {
      const job = readJob(join(folder, "job.yaml"), [
        from("compression", { kind: "identity" }),
        from("overlap", overlap),
        from("ranks", 3),
        from("batch", 33),
        from("evaluation.batch", 33),
        from("checkpoint.everySteps", 4),
        from("replicas.checkEverySteps", 6),
        from("steps", 12),
      ]);
      const output = join(folder, overlap);
      mkdirSync(output);
      const notes: string[] = [];
      const metrics = new MetricFiles(output, 0);
      const run = runWithRestarts({
        prepared: await prepare(job),
        output,
        runner: threadRunner(
          faultyRank({ kind: "flip-bit", rank: 2, step: 5, mark: join(folder, `${overlap}-fault`) }),
        ),
        interruption: new Interruption(),
        metrics,
        progress: { update: () => undefined, note: (line: string) => void notes.push(line), close: () => undefined },
      });
      await expect(run).rejects.toMatchObject({
        kind: "environment",
        code: "replicas-differ",
        message: expect.stringMatching(/step 6: params\.layers\.0\.bias on rank 2 differs from ranks 0, 1;/),
      });
      metrics.close();
      expect(notes.filter((line) => line.includes("restart"))).toEqual([]); // a faulty host would fail again
      expect(checkpointNames(output)).toEqual(["step-00000004"]);
    },
  );
});
