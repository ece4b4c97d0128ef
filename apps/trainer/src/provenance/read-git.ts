import { spawn } from "node:child_process";
import type { Readable } from "node:stream";

/** What git knows of the folder in which a run was started. */
export interface GitFacts {
  /** Of the commit, 40 hexadecimal digits. */
  readonly commit: string;
  readonly branch?: string | undefined;
  /** Files that are tracked and are otherwise than in the commit. */
  readonly isChanged: boolean;
  /** The diff of those; undefined where there are none. */
  readonly changes?: Uint8Array | undefined;
  /** The diff is longer than what is kept of it. */
  readonly isCut?: boolean;
}

const mostDiffBytes = 2 ** 20;
const mostMilliseconds = 5_000;

interface Answer {
  readonly bytes: Buffer;
  readonly isCut: boolean;
}

/** What a command of git prints, up to `mostBytes`; undefined where it fails, is not there or takes too long. */
const ask = (folder: string, words: readonly string[], mostBytes: number): Promise<Answer | undefined> =>
  new Promise<Answer | undefined>((resolve) => {
    const child = spawn("git", ["--no-optional-locks", ...words], {
      cwd: folder,
      stdio: ["ignore", "pipe", "ignore"],
      timeout: mostMilliseconds,
      windowsHide: true,
    });
    child.on("error", () => resolve(undefined));
    const pieces: Buffer[] = [];
    let length = 0;
    const stdout = child.stdout as Readable | undefined; // there is none without file handles for it
    stdout?.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      if (length > mostBytes) child.kill();
    });
    child.on("close", (code) => {
      const isCut = length > mostBytes;
      resolve(code === 0 || isCut ? { bytes: Buffer.concat(pieces).subarray(0, mostBytes), isCut } : undefined);
    });
  }).catch(() => undefined);

/** @returns undefined outside of a repository, or without git. */
export const readGit = async (folder: string): Promise<GitFacts | undefined> => {
  // First alone: many runs begin outside of a repository, and each process that is started costs 20 ms.
  const commit = await ask(folder, ["rev-parse", "HEAD"], 1000);
  if (commit === undefined) return undefined;
  const [branch, diff] = await Promise.all([
    ask(folder, ["symbolic-ref", "--short", "-q", "HEAD"], 1000),
    ask(folder, ["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"], mostDiffBytes),
  ]);
  const isChanged = diff !== undefined && diff.bytes.length > 0;
  return {
    commit: commit.bytes.toString("utf8").trim(),
    branch: branch?.bytes.toString("utf8").trim(),
    isChanged,
    ...(isChanged && { changes: diff.bytes }),
    ...(diff?.isCut === true && { isCut: true }),
  };
};
