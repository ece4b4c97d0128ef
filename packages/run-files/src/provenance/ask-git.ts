import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute } from "node:path";

const maxMilliseconds = 5_000;

export interface Answer {
  readonly bytes: Buffer;
  readonly isCut: boolean;
}

/**
 * Returns the environment for git: the environment of this process without `GIT_…` variables and without relative
 * folders in PATH. Git uses no file system monitor, and fetches no missing objects.
 */
const environmentOf = (variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^GIT_/i.test(name))),
  PATH: (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .join(delimiter),
  GIT_OPTIONAL_LOCKS: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_TERMINAL_PROMPT: "0",
  ...variables,
});

/**
 * Runs a git command in a folder and returns its output, up to `maxBytes`. Undefined: git failed, is not installed, or
 * exceeded the time limit.
 *
 * @param variables `GIT_…` environment variables.
 */
export const askGit = (
  folder: string,
  words: readonly string[],
  maxBytes: number,
  variables: Readonly<Record<string, string>> = {},
): Promise<Answer | undefined> =>
  new Promise((resolve) => {
    const child = spawn(
      "git",
      ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", folder, ...words],
      {
        cwd: tmpdir(), // Windows searches for programs in the working folder first
        env: environmentOf(variables),
        stdio: ["ignore", "pipe", "ignore"],
        timeout: maxMilliseconds,
        windowsHide: true,
      },
    );
    child.on("error", () => resolve(undefined));
    const pieces: Buffer[] = [];
    let length = 0;
    // Undefined if the process could not be started, for example without free file handles.
    (child.stdout as typeof child.stdout | undefined)?.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      if (length > maxBytes) child.kill();
    });
    child.on("close", (code) => {
      const isCut = length > maxBytes;
      resolve(code === 0 || isCut ? { bytes: Buffer.concat(pieces).subarray(0, maxBytes), isCut } : undefined);
    });
  });
