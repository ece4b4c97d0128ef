import { fileURLToPath } from "node:url";
import { execa } from "execa";

/** Command that starts an app of this repository. For the flag see `vitest.config.ts`. */
export const programOf = (app: "trainer" | "profiler"): readonly string[] => [
  process.execPath,
  "--no-memory-protection-keys",
  fileURLToPath(new URL(`../../../apps/${app}/src/main.ts`, import.meta.url)),
];

/** The study was interrupted during a run. */
export class Interrupted extends Error {}

/** Output of a program, and how the program ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tooLong: boolean;
}

/**
 * Runs a program in a folder.
 *
 * @param minutes time after which the program is asked to stop.
 * @throws Interrupted after SIGINT or SIGTERM, once the program has ended too.
 */
export const runProgram = async (
  [program, ...args]: readonly string[],
  folder: string,
  minutes: number,
): Promise<Ended> => {
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  // Not `once`, which would remove this listener and leave only execa's listener, which then ends this process too.
  process.on("SIGINT", stop).on("SIGTERM", stop);
  try {
    const ended = await execa(program!, args, {
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdin: "ignore",
      stripFinalNewline: false,
      reject: false,
      timeout: minutes * 60_000,
      forceKillAfterDelay: 15_000, // the trainer saves a checkpoint first
      cancelSignal: stopped.signal,
    });
    if (ended.isCanceled) throw new Interrupted();
    const { exitCode, signal, stdout, stderr, timedOut } = ended;
    if (exitCode === undefined && signal === undefined) throw ended.cause; // the program did not start
    return { code: exitCode ?? null, stdout, stderr, tooLong: timedOut };
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
};
