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
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What ends each command that runs. */
const running = new Set<(signal: NodeJS.Signals) => void>();

/** Ctrl-C reaches the terminal's group only, which no command is in. */
const stopAll = (signal: NodeJS.Signals): never => {
  for (const end of running) end(signal);
  process.exit(signal === "SIGINT" ? 130 : 143);
};

/** Run a command to its end, with Node 24 and the workspace's tools on PATH. A time-out kills it and all it has started, and gives code 124. */
export const run = (
  command: readonly string[],
  { cwd = repository, input, seconds = 300, show = false, env: own = {} }: RunOptions = {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    const path = `${join(repository, "node_modules/.bin")}:${process.env.PATH}`;
    const env = { ...process.env, PATH: path, TURBO_TELEMETRY_DISABLED: "1", ...own };
    const child = spawn(command[0]!, command.slice(1), {
      cwd,
      env,
      // A process group of its own: what a killed command has started ends with it.
      detached: true,
      stdio: [input === undefined ? "ignore" : "pipe", show ? "inherit" : "pipe", show ? "inherit" : "pipe"],
    });
    let output = "";
    let timedOut = false;
    const endGroup = (signal: NodeJS.Signals): void => {
      try {
        process.kill(-child.pid!, signal);
      } catch {
        // It has ended, or never began.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup("SIGKILL");
    }, seconds * 1000);
    if (running.size === 0) process.on("SIGINT", stopAll).on("SIGTERM", stopAll);
    running.add(endGroup);
    const collect = (chunk: Buffer): void => void (output += chunk.toString());
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
    child.on("error", (error) => (output += error.message));
    child.on("close", (code) => {
      clearTimeout(timer);
      running.delete(endGroup);
      if (running.size === 0) process.off("SIGINT", stopAll).off("SIGTERM", stopAll);
      resolve({ code: timedOut ? 124 : (code ?? 1), output: timedOut ? `${output}\nstill running after ${seconds} s` : output });
    });
  });

/** A command as one check: it passes when it exits with 0. */
export const commandCheck = async (name: string, command: readonly string[], options: RunOptions = {}): Promise<Check> => {
  const { code, output } = await run(command, options);
  return code === 0 ? { name, status: "passed" } : { name, status: "failed", detail: `exit code ${code}\n${output.trim()}` };
};
