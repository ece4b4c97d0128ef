import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { excerpt } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { ModuleJob } from "../job.ts";
import { importWatched } from "./module-links.ts";
import { userError } from "./user-error.ts";

/** A function that a module of a user's exports. */
type Factory = (...args: readonly unknown[]) => unknown;

/**
 * Load the module of a job's `model` or `data`.
 *
 * @param key of the job, for errors: `model` or `data`.
 * @throws ModuleError when it cannot be loaded, or does not export a function under the name asked for.
 */
export const loadModule = async (key: "model" | "data", { file, export: name }: ModuleJob): Promise<Factory> => {
  const what = `${key}.file ${file}`;
  const exports = await importWatched(pathToFileURL(file).href).catch((error: unknown) => {
    throw userError(error, `${what} cannot be loaded`, dirname(file));
  });
  const factory = exports[name];
  if (typeof factory !== "function") {
    const functions = Object.keys(exports).filter((each) => typeof exports[each] === "function");
    const cure =
      functions.length === 0
        ? `write: export default (${key === "model" ? "task, options" : "options"}) => …`
        : `set ${key}.export to one of the functions that it exports: ${functions.join(", ")}`;
    throw new ModuleError(
      `${what}: its export ${excerpt(name)} is ${factory === undefined ? "not there" : excerpt(factory)}, but must be a function; ${cure}`,
    );
  }
  return factory as Factory;
};

/** What a factory makes, awaited. @throws ModuleError for what it throws. */
export const callFactory = async (
  key: "model" | "data",
  { file }: ModuleJob,
  factory: Factory,
  ...args: readonly unknown[]
): Promise<unknown> => {
  try {
    return await factory(...args);
  } catch (error) {
    throw userError(error, `${key}.file ${file}`, dirname(file));
  }
};
