import { join } from "node:path";
import { execa } from "execa";
import { repository } from "./repository.ts";

/** One thing that was looked at. A stage returns one per test, package or tool. */
export interface Check {
  readonly name: string;
  readonly status: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly detail?: string;
}

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly seconds?: number;
  /** Let the command write to the terminal as it goes; `output` is then empty. */
  readonly show?: boolean;
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Run a command to its end, with Node 24 and the workspace's tools on PATH. A time-out ends it and all it has started,
 * by force after 5 s, and gives code 124; should we have to go first, they are told to end.
 */
export const run = async (
  [program, ...args]: readonly string[],
  { cwd = repository, input, seconds = 300, show = false, env = {} }: RunOptions = {},
): Promise<Outcome> => {
  const written = show ? "inherit" : "pipe";
  const { all, exitCode, shortMessage, timedOut } = await execa(program!, args, {
    cwd,
    env: {
      PATH: `${join(repository, "node_modules/.bin")}:${process.env.PATH}`,
      TURBO_TELEMETRY_DISABLED: "1",
      ...env,
    },
    ...(input === undefined ? { stdin: "ignore" } : { input }),
    stdout: written,
    stderr: written,
    all: true,
    stripFinalNewline: false,
    maxBuffer: Infinity,
    reject: false,
    timeout: seconds * 1000,
    killDescendants: true,
  });
  const output = all ?? "";
  if (timedOut) return { code: 124, output: `${output}\nstill running after ${seconds} s` };
  return { code: exitCode ?? 1, output: exitCode === undefined ? `${output}${shortMessage ?? ""}` : output };
};

/** A command as one check: it passes when it exits with 0. */
export const commandCheck = async (
  name: string,
  command: readonly string[],
  options: RunOptions = {},
): Promise<Check> => {
  const { code, output } = await run(command, options);
  return code === 0
    ? { name, status: "passed" }
    : { name, status: "failed", detail: `exit code ${code}\n${output.trim()}` };
};
