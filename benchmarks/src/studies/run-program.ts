import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Starts an app of this repository. The flag: see `vitest.config.ts`. */
export const programOf = (app: "trainer" | "profiler"): readonly string[] => [
  process.execPath,
  "--no-memory-protection-keys",
  fileURLToPath(new URL(`../../../apps/${app}/src/main.ts`, import.meta.url)),
];

/** The study was told to stop while a run went on. */
export class Interrupted extends Error {}

/** What a program printed, and how it ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tooLong: boolean;
}

/**
 * Run a program in a folder.
 *
 * @param minutes after which it is told to end.
 * @throws Interrupted after SIGINT or SIGTERM, when it has ended too.
 */
export const runProgram = async (command: readonly string[], folder: string, minutes: number): Promise<Ended> => {
  const child = spawn(command[0]!, command.slice(1), {
    cwd: folder,
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => void (written[name] += text));
  let [tooLong, interrupted] = [false, false];
  const stop = (): void => {
    interrupted = true;
    child.kill("SIGTERM");
  };
  const limit = setTimeout(() => {
    tooLong = true;
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), 15_000).unref(); // the trainer saves first
  }, minutes * 60_000);
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    const code = await new Promise<number | null>((resolve, reject) => void child.once("error", reject).once("close", resolve));
    if (interrupted) throw new Interrupted();
    return { code, ...written, tooLong };
  } finally {
    clearTimeout(limit);
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
};
