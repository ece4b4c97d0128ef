import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { join } from "node:path";
import { skeinTrain, startWith, until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { networkSettings, stepsDone } from "./attacked-run.ts";
import { countTries, type Verdict } from "./count-tries.ts";
import { markOf, processesOf, signalAll } from "./run-processes.ts";

const signals = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const;

/** Receivers of the signal. A service manager signals all processes, in any order. */
const reached = ["all, ranks first", "all, ranks last", "the first process", "the ranks"] as const;

/**
 * Argument lists of the first process of a run, one for each way to start a run. MPI is included if its addon is
 * available.
 */
const starts: readonly (readonly string[])[] = [
  ["run", "job.yaml", "--transport", "tcp"],
  ["run", "job.yaml", "--transport", "tls"],
  ...(process.env["SKEIN_MPI_ADDON"] === undefined
    ? []
    : [
        ["run", "job.yaml", "--transport", "mpi"],
        ["launch", "job.yaml", "--target", "mpirun", "--submit", "--transport", "tcp"],
      ]),
  ["run", "job.yaml", "--transport", "threads"],
  ["launch", "job.yaml", "--target", "local", "--submit", "--transport", "tcp"],
];

export const signalsToAll: Attack = {
  name: "signals",
  what: "a signal reaches processes of a run: it saves and stops with 128 + n, or continues, and ends with the same bits",
  fewTries: 1,
  inFullRun: true,
  tries: 48,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw): Promise<Verdict> => {
      const start = starts[number % starts.length]!;
      const [isLaunched, transport] = [start[0] === "launch", start.at(-1)!];
      // An external launcher would restart stopped ranks.
      const wholes = isLaunched ? reached.slice(0, 3) : reached;
      const whom = wholes[Math.floor(number / starts.length) % wholes.length]!;
      const signal = signals[draw(signals.length)]!;
      const after = draw(20);
      const [name, id] = [`run-${number}`, randomUUID()];
      const output = join(folder, name);
      const settings = transport === "tcp" || transport === "tls" ? networkSettings : {};
      const args = [
        ...start,
        "--output",
        name,
        ...Object.entries(settings).flatMap(([key, value]) => ["--set", `network.${key}=${value}`]),
      ];
      const verdict = (counted: string, harm?: string): Verdict => ({
        counted,
        harm: harm && `${start.join(" ")}, ${signal} to ${whom} after ${after} steps: ${harm}`,
      });
      const running = startWith({ env: markOf(id) }, folder, ...args);
      try {
        await until(running, () => stepsDone(output) >= after).catch(() => undefined); // it may have finished already
        const first = running.child.pid!;
        const ranks = processesOf(id).filter((pid) => pid !== first);
        if (whom === "all, ranks last" || whom === "the first process") signalAll([first], signal);
        if (whom !== "the first process") signalAll(ranks, signal);
        if (whom === "all, ranks first") signalAll([first], signal);
        const { code, signal: endedBy, stderr } = await running.ended;
        const outcome = `ends with ${code ?? endedBy}: ${stderr.trim().split("\n").slice(-3).join(" | ")}`;
        if (/^\s+at /m.test(stderr)) return verdict(whom, outcome);
        const continues = whom === "the ranks" && transport !== "threads";
        if (continues && (code !== 0 || stderr.includes("(restart "))) return verdict(whom, outcome);
        const begun = stepsDone(output);
        const isStopped = code === 128 + constants.signals[signal] && (begun === 0 || stderr.includes("; saved "));
        const isEarly = endedBy === signal && begun === 0; // the signal arrived before the program had signal handlers
        if (code !== 0 && !isStopped && !isEarly) return verdict(whom, outcome);
        const left = processesOf(id);
        if (left.length > 0) return verdict(whom, `leaves ${left.length} processes`);
        const again = await skeinTrain(folder, ...args, ...(isLaunched ? [] : ["--resume-if-possible"]));
        if (again.code !== 0) return verdict(whom, `cannot resume: ${again.stderr.trim()}`);
        return verdict(code === 0 && !continues ? "came too late" : whom, await sound.harmTo(output));
      } finally {
        signalAll(processesOf(id), "SIGKILL");
      }
    });
  },
};
