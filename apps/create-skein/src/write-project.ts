import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateError } from "./errors.ts";
import { manifestOf, unbuilt } from "./manifest.ts";
import type { Manager } from "./package-managers.ts";
import type { Template } from "./templates.ts";

const templatesFolder = fileURLToPath(new URL("../templates", import.meta.url));

/** Names of entries that an empty folder may contain. These entries are never changed. */
const ignoredEntries: ReadonlySet<string> = new Set([".git", ".DS_Store"]);

/**
 * Runs `work`, and converts file system errors to user errors.
 * @throws CreateError if `work` throws a file system error. Rethrows other errors unchanged.
 */
const explained = <T>(folder: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (error instanceof CreateError || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new CreateError(
      `${folder} cannot be used (${(error as Error).message}); give a folder that you may write to`,
      {
        cause: error,
      },
    );
  }
};

/**
 * Returns "new" if the project folder does not exist, or "empty" if the folder exists and is empty.
 * @throws CreateError if the folder cannot be used.
 */
export const folderState = (folder: string): "new" | "empty" =>
  explained(folder, () => {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined) return "new";
    if (!found.isDirectory()) throw new CreateError(`${folder} is a file; give a folder that is new or empty`);
    const names = readdirSync(folder).filter((name) => !ignoredEntries.has(name));
    if (names.length === 0) return "empty";
    const some = names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
    throw new CreateError(`${folder} is not empty: it contains ${some}; give a folder that is new or empty`);
  });

/** Returns the missing parent folders of `folder`, innermost first. */
const missingAbove = (folder: string): string[] => {
  const above = dirname(folder);
  return existsSync(above) ? [] : [above, ...missingAbove(above)];
};

/** Removes folders in order, until one is not empty. */
const removeEmpty = (folders: readonly string[]): void => {
  try {
    for (const folder of folders) if (existsSync(folder)) rmdirSync(folder);
  } catch {
    // another program has created a file in the folder
  }
};

export interface Project {
  /** Package name of the project. */
  readonly name: string;
  readonly template: Template;
  /** Package manager with which the user will install the project. */
  readonly manager: Manager;
}

/**
 * Settings for pnpm, which exits with code 1 after an install unless each install script is explicitly allowed or
 * denied.
 */
const pnpmSettings = `# For pnpm: no package needs its install script.
allowBuilds:
${unbuilt.map((name) => `  ${name}: false # optional; only makes the package faster\n`).join("")}`;

/** Writes all files of a project into a folder that no other program uses. */
const fill = (folder: string, { name, template, manager }: Project): void => {
  for (const part of ["shared", template]) cpSync(join(templatesFolder, part), folder, { recursive: true });
  // npm excludes a .gitignore from published packages, and applies its rules when packing.
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"));
  const readme = join(folder, "README.md");
  writeFileSync(readme, readFileSync(readme, "utf8").replaceAll("{{name}}", name));
  if (manager === "pnpm") writeFileSync(join(folder, "pnpm-workspace.yaml"), pnpmSettings);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifestOf(name, template), undefined, 2)}\n`);
};

/** Moves all entries of a folder into its parent folder. If one move fails, undoes all moves. */
const moveUp = (from: string, into: string): void => {
  const moved: string[] = [];
  try {
    for (const name of readdirSync(from)) {
      renameSync(join(from, name), join(into, name));
      moved.push(name);
    }
  } catch (error) {
    for (const name of moved) rmSync(join(into, name), { recursive: true, force: true });
    throw error;
  }
};

/**
 * Writes a project: all files or none. A new folder is filled under a temporary name next to its final path and then
 * renamed. An existing folder is kept, because it may be the working folder of a shell.
 *
 * @throws CreateError if the folder is not empty, or is not writable.
 */
export const writeProject = (folder: string, project: Project): void =>
  explained(folder, () => {
    const target = resolve(folder);
    const isNew = folderState(folder) === "new";
    const missing = isNew ? missingAbove(target) : [];
    let draft: string | undefined;
    try {
      mkdirSync(dirname(target), { recursive: true });
      draft = mkdtempSync(join(isNew ? dirname(target) : target, `.${basename(target)}-`));
      fill(draft, project);
      if (isNew) {
        chmodSync(draft, 0o777 & ~process.umask()); // mkdtemp creates a folder that only its owner can read
        renameSync(draft, target);
      } else moveUp(draft, target);
    } finally {
      if (draft !== undefined) rmSync(draft, { recursive: true, force: true });
      removeEmpty(missing);
    }
  });
