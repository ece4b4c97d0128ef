import { spawn } from "node:child_process";
import { join } from "node:path";

/** The repository's root folder. */
export const repository: string = join(import.meta.dirname, "..");

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
}

/** Run a command to its end, with Node 24 and the workspace's tools on PATH. A time-out kills it and gives code 124. */
export const run = (
  command: readonly string[],
  { cwd = repository, input, seconds = 300, show = false }: RunOptions = {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    const env = { ...process.env, PATH: `${join(repository, "node_modules/.bin")}:${process.env.PATH}`, TURBO_TELEMETRY_DISABLED: "1" };
    const child = spawn(command[0]!, command.slice(1), {
      cwd,
      env,
      stdio: [input === undefined ? "ignore" : "pipe", show ? "inherit" : "pipe", show ? "inherit" : "pipe"],
    });
    let output = "";
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
    }, seconds * 1000);
    const collect = (chunk: Buffer): void => void (output += chunk.toString());
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
    child.on("error", (error) => (output += error.message));
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: timedOut ? 124 : (code ?? 1), output: timedOut ? `${output}\nstill running after ${seconds} s` : output });
    });
  });

/** A command as one check: it passes when it exits with 0. */
export const commandCheck = async (name: string, command: readonly string[], options: RunOptions = {}): Promise<Check> => {
  const { code, output } = await run(command, options);
  return code === 0 ? { name, status: "passed" } : { name, status: "failed", detail: `exit code ${code}\n${output.trim()}` };
};
