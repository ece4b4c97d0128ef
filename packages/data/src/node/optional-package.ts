import { createRequire } from "node:module";
import { DataError } from "../errors.ts";
import { type DataPackage, findModule, installCommand } from "./data-packages.ts";

/**
 * Load a package that is there only where somebody has a use for it. As CommonJS, which is what `findModule` finds: its
 * names are not always seen by `import`.
 *
 * @param from file URL of the module whose dependencies are searched: `import.meta.url`.
 * @throws DataError with the command that installs it.
 */
export const requirePackage = (wanted: DataPackage, from: string): unknown => {
  const entry = findModule(wanted.name, from);
  if (entry === undefined)
    throw new DataError(
      `package ${wanted.name}, ${wanted.holds}, is not installed; install it with: ${installCommand(wanted)}`,
    );
  return createRequire(entry)(entry);
};
