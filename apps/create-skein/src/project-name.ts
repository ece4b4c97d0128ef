import { basename, resolve } from "node:path";
import { takenNames } from "./manifest.ts";

/** Matches package names that npm accepts: https://docs.npmjs.com/cli/configuring-npm/package-json#name. */
const pattern = /^[a-z0-9~-][a-z0-9._~-]*$/;
const longest = 214;
const refused: ReadonlySet<string> = new Set(["node_modules", "favicon.ico", ...takenNames]);

/** Returns a valid package name that is similar to `name`. */
const near = (name: string): string => {
  const words = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._~-]+/g, "-")
    .replace(/^[._-]+|-+$/g, "")
    .slice(0, longest);
  return words === "" || refused.has(words) ? "my-run" : words;
};

/** Returns the name of the project in a folder, which is the name of the folder. */
export const projectName = (folder: string): string => basename(resolve(folder));

/** Returns the reason why npm would reject a name, and suggests a valid name. Undefined for a valid name. */
export const nameFault = (name: string): string | undefined => {
  const cure = `name the folder ${near(name)}, for example`;
  if (refused.has(name)) return `${name} is the name of a dependency of the project or reserved by npm; ${cure}`;
  if (name.length > longest)
    return `a name of ${name.length} characters is too long for npm, which allows ${longest}; ${cure}`;
  return pattern.test(name)
    ? undefined
    : `${JSON.stringify(name)} is not a valid npm name: lower-case letters, digits and -._~, not starting with a dot; ${cure}`;
};
