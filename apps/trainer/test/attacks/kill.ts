import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { checkpointBytes, jobFolder, skeinTrain, start, stepLosses, until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { drawFrom, Tally } from "./draw.ts";

/** Of the job of `jobFolder`. */
const totalSteps = 30;

const stepsDone = (output: string): number => (existsSync(join(output, "metrics.jsonl")) ? countSteps(output) : 0);

const countSteps = (output: string): number => {
  try {
    return stepLosses(output).length;
  } catch {
    return 0; // its last line is being written
  }
};

export const kill: Attack = {
  name: "kill",
  what: "a run is killed after a drawn number of steps and resumed: the same bits as without",
  fewTries: 1,
  tries: 40,
  run: async ({ count, seed, folder }) => {
    const draw = drawFrom(seed);
    const tally = new Tally();
    const fallen: string[] = [];
    const job = jobFolder();
    try {
      mkdirSync(folder, { recursive: true });
      cpSync(join(job.folder, "job.yaml"), join(folder, "job.yaml"));
    } finally {
      job.remove();
    }
    const whole = await skeinTrain(folder, "run", "job.yaml", "--output", "whole");
    if (whole.code !== 0) throw new Error(`the run without an attack fails: ${whole.stderr}`);
    const expected = JSON.stringify(checkpointBytes(join(folder, "whole"), totalSteps));
    for (let attempt = 0; attempt < count; attempt++) {
      const transport = ["threads", "tcp", "tls"][attempt % 3]!;
      const [name, after] = [`run-${attempt}`, 1 + draw(totalSteps - 1)];
      const output = join(folder, name);
      const running = start(folder, "run", "job.yaml", "--transport", transport, "--output", name);
      await until(running, () => stepsDone(output) >= after).catch(() => undefined); // it may have been faster
      running.child.kill("SIGKILL");
      await running.ended;
      // Before the first checkpoint there is nothing to resume: the same command begins anew.
      const again = await skeinTrain(folder, "run", "job.yaml", "--transport", transport, "--output", name, "--resume-if-possible");
      tally.add(transport);
      const same = again.code === 0 && JSON.stringify(checkpointBytes(output, totalSteps)) === expected;
      if (!same)
        fallen.push(`${transport}, after ${after} steps: code ${again.code}, ${again.code === 0 ? "other bits" : again.stderr.trim()}`);
    }
    return { counts: tally.counts, fallen };
  },
};
