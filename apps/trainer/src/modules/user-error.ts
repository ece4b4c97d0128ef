import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { SkeinError } from "@skein/tensor-core";
import { ModuleError } from "../errors.ts";

/** Folder of this program, which may be inside a user's folder: under `node_modules`, or during development. */
const ownFolder = dirname(fileURLToPath(import.meta.url));

/**
 * First location in the user's own files in a stack, because the innermost frames may be in this program or in Node.
 */
export const locationOf = (error: Error, folder: string): string | undefined => {
  const frame = error.stack
    ?.split("\n")
    .find((line) => line.includes(folder) && !line.includes("/node_modules/") && !line.includes(ownFolder));
  return frame?.slice(frame.indexOf(folder)).match(/^[^)\s]+?:\d+(?::\d+)?/)?.[0];
};

/**
 * Convert an exception of user code to an error that names the location in it. Errors of this program keep their words,
 * kind and code.
 *
 * @param what the module and its activity, such as `model.file my-model.ts: init`. @param folder of the user's files.
 * @param at location, if the stack does not have it.
 */
export const userError = (error: unknown, what: string, folder: string, at?: string): SkeinError => {
  const known = error instanceof Error ? error : new Error(String(error));
  const found = locationOf(known, folder) ?? at;
  const locationText = found === undefined ? "" : ` (at ${found})`;
  if (known instanceof SkeinError) {
    const [rule, location] = known.message.split("\n    at "); // a shape mismatch names its location, in a library too
    const hasLocation = location !== undefined && (locationText === "" || !location.includes("/node_modules/"));
    const named = new SkeinError(
      known.kind,
      known.code,
      `${what}: ${hasLocation ? known.message : `${rule}${locationText}`}`,
      {
        cause: error,
      },
    );
    if (known.stack !== undefined) named.stack = known.stack;
    return named;
  }
  return new ModuleError(`${what}: ${known.name}: ${known.message.split("\n")[0]}${locationText}; correct it there`, {
    cause: error,
  });
};

/** Call user code. @throws its exception, converted by `userError`. */
export const callOwn = <Result>(what: string, folder: string, fn: () => Result): Result => {
  try {
    return fn();
  } catch (error) {
    throw userError(error, what, folder);
  }
};
