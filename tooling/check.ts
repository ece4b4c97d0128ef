import { join } from "node:path";
import { execa } from "execa";
import { repository } from "./repository.ts";

/** Result of one check. A stage returns one result per test, package or tool. */
export interface Check {
  readonly name: string;
  readonly status: "passed" | "failed" | "skipped";
  /** Reason of a failure or skip. Absent if the check passed. */
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
  /** Whether the command writes directly to the terminal. If true, `output` is empty. */
  readonly show?: boolean;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a command to its end, with Node 24 and the workspace's tools on PATH. After a timeout, the command and all
 * processes that it started are ended, by force after 5 s, and the code is 124. If this process is ended first, it ends
 * these processes as well.
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

/** Runs a command as a check, which passes if the exit code is 0. */
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
