import { basename, resolve } from "node:path";
import { takenNames } from "./manifest.ts";

/** What npm takes as the name of a package: https://docs.npmjs.com/cli/configuring-npm/package-json#name. */
const pattern = /^[a-z0-9~-][a-z0-9._~-]*$/;
const longest = 214;
const refused: ReadonlySet<string> = new Set(["node_modules", "favicon.ico", ...takenNames]);

/** The nearest name that npm takes. */
const near = (name: string): string => {
  const words = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replace(/^[._-]+|-+$/g, "")
    .slice(0, longest);
  return words === "" || refused.has(words) ? "my-run" : words;
};

/** The name of the project in a folder: that of the folder. */
export const projectName = (folder: string): string => basename(resolve(folder));

/** Why npm would not take a name, and one that it takes; undefined for a good one. */
export const nameFault = (name: string): string | undefined => {
  const cure = `call the folder ${near(name)}, say`;
  if (refused.has(name)) return `${name} is a name that a package of the project has, or npm keeps; ${cure}`;
  if (name.length > longest)
    return `a name of ${name.length} letters is too long for npm, which takes ${longest}; ${cure}`;
  return pattern.test(name)
    ? undefined
    : `${JSON.stringify(name)} is no name for npm, which takes small letters, digits and -._~, no dot first; ${cure}`;
};
