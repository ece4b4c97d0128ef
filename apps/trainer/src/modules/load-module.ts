import * as fs from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError, ModuleError } from "@skein/cli/node";
import { type ModuleJob, type ModuleKey, moduleKeys } from "@skein/job/node";
import { excerpt, openCheckedFile } from "@skein/tensor-core/backend";
import { definitionOf } from "./define.ts";
import { importWatched, watchedFiles } from "./module-links.ts";
import { keysOf, type SchemaIssue } from "./standard-schema.ts";
import { syntaxErrorLocation } from "./syntax-place.ts";
import { locationOf, userError } from "./user-error.ts";

/** A function that a user module exports. */
type Factory = (...args: readonly unknown[]) => unknown;

/** Returns the name of a module for error messages. */
export const moduleName = (key: ModuleKey, { file }: Pick<ModuleJob, "file">): string => `${key}.file ${file}`;

/**
 * Requires that a module file is a regular file, because Node would wait for the writer of a pipe. A missing file is
 * accepted, because the import reports missing files. @throws ModuleError.
 */
const requireSource = (key: ModuleKey, file: string): void => {
  if (!fs.existsSync(file)) return;
  const rules = {
    holds: "text",
    cure: `name a file of JavaScript or TypeScript in ${key}.file`,
    fault: (message: string, options?: ErrorOptions) => new ModuleError(message, options),
  } as const;
  fs.closeSync(openCheckedFile(fs, file, rules).file);
};

/** Environment variable with which a process, its threads and its child processes refuse to load modules of jobs. */
export const noModulesVariable = "SKEIN_NO_MODULES";

/** Whether this process refuses to load modules of jobs. */
export const refusesModules = (): boolean => !["", "0"].includes(process.env[noModulesVariable] ?? "");

/**
 * Loads the module that a job names, and returns its exported function.
 *
 * @throws ModuleError if the module cannot be loaded, does not export a function of the given name, or exports a
 * factory for another job key.
 */
export const loadModule = async (key: ModuleKey, { file, export: name }: ModuleJob): Promise<Factory> => {
  const what = moduleName(key, { file });
  if (refusesModules()) throw new ConfigError([`${what}: is code, which --no-modules refuses; remove that option`]);
  const { parameters, helper } = moduleKeys[key];
  requireSource(key, file);
  const { href } = pathToFileURL(file);
  const exports = await importWatched(href).catch(async (error: unknown) => {
    const folder = dirname(file);
    const hasNoLocation = error instanceof SyntaxError && locationOf(error, folder) === undefined;
    throw userError(
      error,
      `${what} cannot be loaded`,
      folder,
      hasNoLocation ? await syntaxErrorLocation(watchedFiles(href)) : undefined,
    );
  });
  const factory = exports[name];
  if (typeof factory !== "function") {
    const functions = Object.keys(exports).filter((each) => typeof exports[each] === "function");
    const cure =
      functions.length === 0
        ? `write: export default ${parameters} => …`
        : `set ${key}.export to one of the functions that it exports: ${functions.join(", ")}`;
    throw new ModuleError(
      `${what}: its export ${excerpt(name)} is ${factory === undefined ? "missing" : excerpt(factory)}, but must be a function; ${cure}`,
    );
  }
  const defined = definitionOf(factory);
  if (defined !== undefined && defined.key !== key)
    throw new ModuleError(
      `${what}: its export ${excerpt(name)} was made by ${moduleKeys[defined.key].helper}, which is for ${defined.key}, but is used for ${key}; name the module under ${defined.key}, or make it with ${helper}`,
    );
  return factory as Factory;
};

/** Validated options, or the issues that the schema reports. */
type OptionsOutcome =
  | { readonly options: Readonly<Record<string, unknown>> }
  | { readonly issues: readonly SchemaIssue[] };

/**
 * Validates the options of a job with the schema of a factory, if the factory has a schema. @throws ModuleError if the
 * schema throws.
 */
const checkedOptions = async (factory: Factory, options: ModuleJob["options"], what: string, folder: string) => {
  const schema = definitionOf(factory)?.options;
  if (schema === undefined) return { options } satisfies OptionsOutcome;
  try {
    const outcome = await schema["~standard"].validate(options);
    return (outcome.issues === undefined ? { options: outcome.value } : { issues: outcome.issues }) as OptionsOutcome;
  } catch (error) {
    throw userError(error, `${what}: the schema of its options`, folder);
  }
};

/** Returns the value of an option in a job. Undefined if the job does not set the option. */
const valueAt = (options: unknown, keys: readonly string[]): unknown =>
  keys.reduce<unknown>((value, key) => (value as Readonly<Record<string, unknown>> | undefined | null)?.[key], options);

const faultLine = (key: ModuleKey, options: ModuleJob["options"], issue: SchemaIssue): string => {
  const keys = keysOf(issue);
  const value = valueAt(options, keys);
  return `${[key, "options", ...keys].join(".")} is ${value === undefined ? "not given" : excerpt(value)}: ${issue.message.split("\n")[0]}; change it`;
};

/** Maximum number of issues of a module's options that an error lists. */
const maxFaults = 10;

/**
 * Requires that the options of a job satisfy the schema of the module.
 *
 * @param locationOf returns the location of a job key in its file.
 * @throws ConfigError with one line per issue, as for built-in keys; ModuleError if the schema throws.
 */
export const requireOptions = async (
  key: ModuleKey,
  module: ModuleJob,
  factory: Factory,
  locationOf: (path: readonly string[]) => string | undefined = () => undefined,
): Promise<Readonly<Record<string, unknown>>> => {
  const outcome = await checkedOptions(factory, module.options, moduleName(key, module), dirname(module.file));
  if (!("issues" in outcome)) return outcome.options;
  throw new ConfigError(
    outcome.issues.slice(0, maxFaults).map((issue) => {
      const location = locationOf([...key.split("."), "options", ...keysOf(issue)]);
      return `${location === undefined ? "" : `${location}: `}${faultLine(key, module.options, issue)}`;
    }),
  );
};

/**
 * Calls a module's factory with `args` followed by the job's options, and awaits the result.
 *
 * @throws ModuleError if the module cannot be loaded or its factory throws; ConfigError if the schema rejects the
 * options.
 */
export const makeOwn = async (key: ModuleKey, module: ModuleJob, ...args: readonly unknown[]): Promise<unknown> => {
  const factory = await loadModule(key, module);
  const options = await requireOptions(key, module, factory);
  try {
    return await factory(...args, options);
  } catch (error) {
    throw userError(error, moduleName(key, module), dirname(module.file));
  }
};
