import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { exitCodes } from "@skein/cli/node";
import { childrenOf, type Ended, type Running, startWith, until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { stepsDone, totalSteps } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";

const namespaces = [
  ["unshare", "--pid", "--fork", "--mount-proc"],
  ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"],
];
/**
 * Command that starts another command in a new PID namespace under the same host name, as a container does. Undefined
 * if this is not permitted.
 */
const container = namespaces.find(([program, ...args]) => spawnSync(program!, [...args, "true"]).status === 0);

const start = (folder: string, launcher: readonly string[] | undefined): Running =>
  startWith(
    launcher === undefined ? {} : { launcher },
    folder,
    "run",
    "job.yaml",
    "--output",
    "run",
    "--resume-if-possible",
  );

/** Kills the program immediately. With a launcher, the program is a child process of the launcher. */
const kill = ({ child }: Running, launcher: readonly string[] | undefined): void => {
  const own = launcher === undefined ? [child.pid!] : childrenOf(child.pid!);
  for (const pid of own) process.kill(pid, "SIGKILL");
};

const codes: ReadonlySet<number | null> = new Set([exitCodes.ok, exitCodes.temporary]);

/**
 * Returns a description of the damage after concurrent starts, at least one of which must have succeeded. Undefined: no
 * damage.
 */
const harmOf = (ends: readonly Ended[]): string | undefined => {
  const wrong = ends.find(({ code, stderr }) => !codes.has(code) || /^\s+at /m.test(stderr));
  if (wrong !== undefined) return `code ${wrong.code}: ${wrong.stderr.trim().split("\n").at(-1)}`;
  return ends.some(({ code }) => code === exitCodes.ok) ? undefined : "none came through";
};

export const twoWriters: Attack = {
  name: "two-writers",
  what: "a run is started while it runs or after it was killed, also in another container: only one writes, and ends with the same bits",
  fewTries: 2,
  inFullRun: true,
  tries: 20,
  run: (input) =>
    countTries(input, async (number, draw) => {
      const folder = join(input.folder, String(number));
      mkdirSync(folder);
      input.sound.copyJob(folder);
      const output = join(folder, "run");
      const [first, second] =
        number % 4 < 2 ? [undefined, container] : [container, draw(2) === 0 ? undefined : container];
      const isKilled = number % 2 === 1;
      const where = `${first === undefined ? "here" : "container"}, ${second === undefined ? "here" : "container"}`;
      const running = start(folder, first);
      const reached = draw(totalSteps);
      await until(running, () => stepsDone(output) > reached).catch(() => undefined); // it may have finished already
      if (isKilled) kill(running, first);
      const ends = await Promise.all([start(folder, second).ended, ...(isKilled ? [] : [running.ended])]);
      if (isKilled) await running.ended;
      const left = readdirSync(output).filter((name) => name.startsWith("."));
      const harm = harmOf(ends) ?? (left.length > 0 ? `left ${left.join(", ")}` : await input.sound.harmTo(output));
      return {
        counted: isKilled ? "killed" : "running",
        harm: harm && `${isKilled ? "killed" : "running"} after ${reached} steps (${where}): ${harm}`,
      };
    }),
};
