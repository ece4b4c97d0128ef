import { fileURLToPath } from "node:url";
import { execa } from "execa";

/** Returns the command that starts an app of this repository. `vitest.config.ts` explains Node's flag. */
export const programOf = (app: "trainer" | "profiler"): readonly string[] => [
  process.execPath,
  "--no-memory-protection-keys",
  fileURLToPath(new URL(`../../../apps/${app}/src/main.ts`, import.meta.url)),
];

/** Error for a study that was interrupted during a run. */
export class Interrupted extends Error {}

/** Output of a program and its exit code. `code` is null if a signal ended the program. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tooLong: boolean;
}

/**
 * Runs a program in a folder.
 *
 * @param minutes Time limit, after which the program receives a signal to stop.
 * @throws Interrupted after SIGINT or SIGTERM, after the program has exited as well.
 */
export const runProgram = async (
  [program, ...args]: readonly string[],
  folder: string,
  minutes: number,
): Promise<Ended> => {
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  // `on` instead of `once`: `once` would remove this listener after the first signal and leave only execa's listener,
  // which then ends this process too.
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
