import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Answer, askGit } from "./ask-git.ts";

/** State of the Git repository in which a run was started. */
export interface GitFacts {
  /** Commit hash, 40 hexadecimal digits. */
  readonly commit: string;
  readonly branch?: string | undefined;
  /** Whether tracked files differ from the commit. Absent: unknown. */
  readonly isChanged?: boolean;
  /** Diff of the changed files. Absent: no diff. */
  readonly changes?: Uint8Array | undefined;
  /** Whether the diff was truncated. */
  readonly isCut?: boolean;
}

const maxDiffBytes = 2 ** 20;
const maxLineBytes = 1000;

/** Folders of a Git repository. */
interface Repository {
  readonly commit: string;
  /** Folder that contains the Git index of the work tree. */
  readonly gitFolder: string;
  /** Folder with the Git objects, shared by all work trees of the repository. */
  readonly commonFolder: string;
  readonly workTree: string;
}

const linesOf = (answer: Answer | undefined): string[] | undefined => answer?.bytes.toString("utf8").split("\n");

/**
 * Finds the Git repository that contains a folder.
 * @returns undefined outside of a repository, before its first commit, or without git.
 */
const repositoryOf = async (folder: string): Promise<Repository | undefined> => {
  // Uses a single process, because starting a process costs 20 ms.
  const words = ["rev-parse", "HEAD", "--git-dir", "--git-common-dir", "--show-toplevel"];
  const lines = linesOf(await askGit(folder, words, 4 * maxLineBytes));
  if (lines?.length !== 5 || !/^[0-9a-f]{40,64}$/.test(lines[0]!)) return undefined;
  const [commit, gitFolder, commonFolder, workTree] = lines as [string, string, string, string];
  return { commit, gitFolder: resolve(folder, gitFolder), commonFolder: resolve(folder, commonFolder), workTree };
};

/** Repository settings that affect how files are compared and cannot start a program. */
const harmless = String.raw`^(core\.(filemode|symlinks|ignorecase|autocrlf|eol|trustctime|checkstat)|extensions\.objectformat)$`;

/** Returns Git configuration text that contains only the settings that match `harmless`. */
const harmlessSettings = async (folder: string): Promise<string> => {
  const lines = linesOf(await askGit(folder, ["config", "--get-regexp", harmless], maxLineBytes)) ?? [];
  const settings = lines.flatMap((line) => {
    const [, section, name, value] = /^(core|extensions)\.([a-z]+) ([a-z0-9]+)$/i.exec(line) ?? [];
    return value === undefined ? [] : [`[${section}]\n\t${name} = ${value}\n`];
  });
  return `[core]\n\trepositoryformatversion = 1\n${settings.join("")}`;
};

/**
 * Computes the diff of the work tree. The settings of a repository may name programs that git runs to compare files,
 * such as filters, file system monitors and text converters. Therefore git uses a temporary repository with the
 * original objects and index, but without the original settings. Submodules are compared by commit only, because their
 * settings may name programs as well.
 */
const diffOf = async ({ commit, gitFolder, commonFolder, workTree }: Repository): Promise<Answer | undefined> => {
  let own: string | undefined;
  try {
    own = mkdtempSync(join(tmpdir(), "skein-git-"));
    for (const name of ["refs", "objects"]) mkdirSync(join(own, name));
    writeFileSync(join(own, "HEAD"), `${commit}\n`);
    writeFileSync(join(own, "config"), await harmlessSettings(workTree));
    const words = ["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];
    return await askGit(workTree, words, maxDiffBytes, {
      GIT_DIR: own,
      GIT_WORK_TREE: workTree,
      GIT_INDEX_FILE: join(gitFolder, "index"),
      GIT_OBJECT_DIRECTORY: join(commonFolder, "objects"),
      // User and system settings may also name filters.
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_ATTR_NOSYSTEM: "1",
      HOME: own,
      XDG_CONFIG_HOME: own,
    });
  } catch {
    return undefined; // no temporary folder could be created
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true });
  }
};

/**
 * Returns commit, branch and changes of a folder. Runs no program named by the folder, its repository or the
 * environment.
 *
 * @returns undefined outside of a repository, or without git.
 */
export const readGit = async (folder: string): Promise<GitFacts | undefined> => {
  const repository = await repositoryOf(folder);
  if (repository === undefined) return undefined;
  const [branch, diff] = await Promise.all([
    askGit(folder, ["symbolic-ref", "--short", "-q", "HEAD"], maxLineBytes),
    diffOf(repository),
  ]);
  const facts = { commit: repository.commit, branch: branch?.bytes.toString("utf8").trim() };
  if (diff === undefined) return facts;
  const { bytes, isCut } = diff;
  return bytes.length === 0
    ? { ...facts, isChanged: false }
    : { ...facts, isChanged: true, changes: bytes, ...(isCut && { isCut }) };
};
