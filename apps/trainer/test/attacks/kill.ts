import { join } from "node:path";
import { skeinTrain, start, until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { stepsDone, totalSteps } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";

export const kill: Attack = {
  name: "kill",
  what: "a run is killed after a random number of steps and resumed: the same bits as without",
  fewTries: 1,
  inFullRun: true,
  tries: 40,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw) => {
      const counted = ["threads", "tcp", "tls"][number % 3]!;
      const [name, after] = [`run-${number}`, 1 + draw(totalSteps - 1)];
      const output = join(folder, name);
      const running = start(folder, "run", "job.yaml", "--transport", counted, "--output", name);
      await until(running, () => stepsDone(output) >= after).catch(() => undefined); // it may have finished already
      running.child.kill("SIGKILL");
      await running.ended;
      // Before the first checkpoint a run cannot resume: the same command starts from the beginning.
      const { code, stderr } = await skeinTrain(
        folder,
        "run",
        "job.yaml",
        "--transport",
        counted,
        "--output",
        name,
        "--resume-if-possible",
      );
      const harm = code === 0 ? await sound.harmTo(output) : `code ${code}, ${stderr.trim()}`;
      return { counted, harm: harm && `${counted}, after ${after} steps: ${harm}` };
    });
  },
};
