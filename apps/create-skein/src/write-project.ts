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

/** What may lie in a folder that counts as empty: nothing of it is touched. */
const passedOver: ReadonlySet<string> = new Set([".git", ".DS_Store"]);

/** @throws CreateError in place of what the system says; what is no fault of a place as it is. */
const explained = <T>(folder: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (error instanceof CreateError || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new CreateError(`${folder} cannot be used (${(error as Error).message}); name one that you may write to`, {
      cause: error,
    });
  }
};

/** Whether a project would make its folder or take an empty one. @throws CreateError where it cannot be written. */
export const placeFor = (folder: string): "new" | "empty" =>
  explained(folder, () => {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined) return "new";
    if (!found.isDirectory()) throw new CreateError(`${folder} is a file; name a folder that is new or empty`);
    const names = readdirSync(folder).filter((name) => !passedOver.has(name));
    if (names.length === 0) return "empty";
    const some = names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
    throw new CreateError(`${folder} is not empty, it holds ${some}; name a folder that is new or empty`);
  });

/** Folders above `folder` that are not there yet, the innermost first. */
const missingAbove = (folder: string): string[] => {
  const above = dirname(folder);
  return existsSync(above) ? [] : [above, ...missingAbove(above)];
};

/** Remove folders as long as nothing is in them. */
const removeEmpty = (folders: readonly string[]): void => {
  try {
    for (const folder of folders) if (existsSync(folder)) rmdirSync(folder);
  } catch {
    // another program has put something there
  }
};

export interface Project {
  /** Of its package. */
  readonly name: string;
  readonly template: Template;
  /** That will install it. */
  readonly manager: Manager;
}

/** pnpm ends an install with code 1 where it neither runs nor leaves out a script of a package by order. */
const pnpmSettings = `# For pnpm: nothing has to be built when packages are installed.
allowBuilds:
${unbuilt.map((name) => `  ${name}: false # makes it faster; what uses it does without\n`).join("")}`;

/** Write all files of a project into a folder that nobody looks into yet. */
const fill = (folder: string, { name, template, manager }: Project): void => {
  for (const part of ["shared", template]) cpSync(join(templatesFolder, part), folder, { recursive: true });
  // npm leaves a .gitignore out of packages, and heeds it while packing.
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"));
  const readme = join(folder, "README.md");
  writeFileSync(readme, readFileSync(readme, "utf8").replaceAll("{{name}}", name));
  if (manager === "pnpm") writeFileSync(join(folder, "pnpm-workspace.yaml"), pnpmSettings);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifestOf(name, template), undefined, 2)}\n`);
};

/** Move what a folder holds into the one that it lies in; all or nothing. */
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
 * Write a project: whole, or nothing of it. A new folder is filled beside its place and renamed; one that is there
 * stays the same folder, since a shell may be in it.
 *
 * @throws CreateError for a folder that is not empty, or cannot be written.
 */
export const writeProject = (folder: string, project: Project): void =>
  explained(folder, () => {
    const place = resolve(folder);
    const isNew = placeFor(folder) === "new";
    const missing = isNew ? missingAbove(place) : [];
    let draft: string | undefined;
    try {
      mkdirSync(dirname(place), { recursive: true });
      draft = mkdtempSync(join(isNew ? dirname(place) : place, `.${basename(place)}-`));
      fill(draft, project);
      if (isNew) {
        chmodSync(draft, 0o777 & ~process.umask()); // a folder of mkdtemp is for its owner alone
        renameSync(draft, place);
      } else moveUp(draft, place);
    } finally {
      if (draft !== undefined) rmSync(draft, { recursive: true, force: true });
      removeEmpty(missing);
    }
  });
