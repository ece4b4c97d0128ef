import { fileURLToPath } from "node:url";
import { execa } from "execa";

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
export const runProgram = async (
  [program, ...args]: readonly string[],
  folder: string,
  minutes: number,
): Promise<Ended> => {
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  // Not `once`: it would leave execa's listener the only one, which then ends us, too.
  process.on("SIGINT", stop).on("SIGTERM", stop);
  try {
    const ended = await execa(program!, args, {
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdin: "ignore",
      stripFinalNewline: false,
      reject: false,
      timeout: minutes * 60_000,
      forceKillAfterDelay: 15_000, // the trainer saves first
      cancelSignal: stopped.signal,
    });
    if (ended.isCanceled) throw new Interrupted();
    const { exitCode, signal, stdout, stderr, timedOut } = ended;
    if (exitCode === undefined && signal === undefined) throw ended.cause; // it did not start
    return { code: exitCode ?? null, stdout, stderr, tooLong: timedOut };
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
};
