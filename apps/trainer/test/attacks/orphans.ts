import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { startWith } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { countTries, type Verdict } from "./count-tries.ts";
import { markOf, processesOf, signalAll } from "./run-processes.ts";

/** Argument lists of the first process of a run, one for each way to start a run. */
const starts: readonly (readonly string[])[] = [
  ["run", "job.yaml", "--transport", "tcp"],
  ["run", "job.yaml", "--transport", "tls"],
  ["launch", "job.yaml", "--target", "local", "--submit", "--transport", "tcp"],
  ...(process.env["SKEIN_MPI_ADDON"] === undefined
    ? []
    : [
        ["run", "job.yaml", "--transport", "mpi"],
        ["launch", "job.yaml", "--target", "mpirun", "--submit", "--transport", "mpi"],
        ["launch", "job.yaml", "--target", "mpirun", "--submit", "--transport", "tcp"],
      ]),
];

/**
 * Time limit in milliseconds: far below the ten minutes that ranks wait for each other, and long enough for a busy
 * machine.
 */
const longestMilliseconds = 30_000;
/** Arguments of a run that practically never ends. */
const endless = ["--steps", "1000000"];

export const orphans: Attack = {
  name: "orphans",
  what: "the first process of a run is killed after it has started others: all others end too",
  fewTries: 1,
  tries: 36,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw): Promise<Verdict> => {
      const args = starts[number % starts.length]!;
      const after = number < starts.length ? 0 : draw(3000);
      const id = randomUUID();
      const output = ["--output", join(folder, `run-${number}`)];
      const running = startWith({ env: markOf(id) }, folder, ...args, ...endless, ...output);
      const verdict = (harm?: string): Verdict => ({
        counted: [args[0], args.at(-1)].join(" over "),
        harm: harm && `${args.join(" ")}, killed ${after} ms after it had started others: ${harm}`,
      });
      const others = (): number[] => processesOf(id).filter((pid) => pid !== running.child.pid);
      try {
        const hasEnded = (): boolean => running.child.exitCode !== null;
        while (!hasEnded() && others().length === 0) await rest(2);
        await rest(after);
        if (hasEnded()) return verdict(`ended by itself: ${running.stderr().trim()}`);
        running.child.kill("SIGKILL");
        const until = performance.now() + longestMilliseconds;
        while (others().length > 0 && performance.now() < until) await rest(20);
        const left = others().length;
        return verdict(
          left > 0 ? `${left} processes are still alive after ${longestMilliseconds / 1000} s` : undefined,
        );
      } finally {
        signalAll(processesOf(id), "SIGKILL");
      }
    });
  },
};
