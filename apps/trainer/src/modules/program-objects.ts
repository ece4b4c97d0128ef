import { ConfigError, ModuleError } from "@skein/cli/node";
import { type ModuleKey, moduleKeys } from "@skein/job/node";
import { definitionOf } from "./define.ts";
import { keysOf } from "./standard-schema.ts";
import { userError } from "./user-error.ts";

type Factory = (...args: readonly unknown[]) => unknown;

/** Returns the name of a program's object for error messages. */
export const givenName = (key: ModuleKey): string => `train(): ${key}`;

/** Returns the default options of a factory, as defined by the factory's schema. */
const defaultsOf = async (key: ModuleKey, factory: Factory): Promise<unknown> => {
  const schema = definitionOf(factory)?.options;
  if (schema === undefined) return {};
  const outcome = await schema["~standard"].validate({});
  if (outcome.issues === undefined) return outcome.value;
  const [issue] = outcome.issues;
  const option = keysOf(issue!)[0] ?? "…";
  const before = moduleKeys[key].parameters.replace(/^\(|(, )?options\)$/g, "");
  throw new ConfigError([
    `${givenName(key)}: its option ${option} is missing: ${issue!.message.split("\n")[0]}; write (${before}) => yours(${before}${before === "" ? "" : ", "}{ ${option}: … })`,
  ]);
};

/**
 * Returns an object that a program passed: the object itself, or the result of its factory, called with `args` and
 * default options.
 *
 * @throws ModuleError if the factory belongs to another job key or throws; ConfigError if the factory needs options.
 */
export const givenObject = async (key: ModuleKey, given: unknown, ...args: readonly unknown[]): Promise<unknown> => {
  if (typeof given !== "function") return given;
  const factory = given as Factory;
  const defined = definitionOf(factory);
  if (defined !== undefined && defined.key !== key)
    throw new ModuleError(
      `${givenName(key)} was made by ${moduleKeys[defined.key].helper}, which is for ${defined.key}; give it under ${defined.key}, or make it with ${moduleKeys[key].helper}`,
    );
  const options = await defaultsOf(key, factory);
  try {
    return await factory(...args, options);
  } catch (error) {
    throw userError(error, givenName(key), process.cwd());
  }
};

/** Whether a program passed an object or a factory, instead of a name or a module. */
export const isGivenObject = (part: unknown): part is object =>
  typeof part === "function" || (typeof part === "object" && part !== null && !("kind" in part));

/** Throws a ConfigError that says that only the program can provide an object. */
export const failWithoutProgram = (key: ModuleKey): never => {
  throw new ConfigError([
    `${key}: it was given by a program, and only that program can give it again; call train() there with the same output folder and resume: true`,
  ]);
};
