import { createRequire } from "node:module";
import { DataError } from "../errors.ts";
import { type DataPackage, findModule, installCommand } from "./data-packages.ts";

/**
 * Resolves an optional package with `findModule` and loads it as CommonJS, because `import` does not always see the
 * names that a CommonJS package exports.
 *
 * @param from File URL of the module from which the package is resolved: `import.meta.url`.
 * @throws DataError with the install command if the package is missing.
 */
export const requirePackage = (wanted: DataPackage, from: string): unknown => {
  const entry = findModule(wanted.name, from);
  if (entry === undefined)
    throw new DataError(
      `package ${wanted.name}, ${wanted.holds}, is not installed; install it with: ${installCommand(wanted)}`,
    );
  return createRequire(entry)(entry);
};
