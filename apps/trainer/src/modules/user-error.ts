import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { ModuleError } from "@skein/cli/node";
import { SkeinError } from "@skein/tensor-core";

/**
 * Folder of this program. Stack frames in this folder are not in user code, even if a user's folder contains it, as
 * under `node_modules` or during development.
 */
const ownFolder = dirname(fileURLToPath(import.meta.url));

/**
 * Returns the location (file and line) of the innermost stack frame in the user's files. Skips frames of this program
 * and of Node that the user's code has called. Undefined: no frame is in the user's files.
 */
export const locationOf = (error: Error, folder: string): string | undefined => {
  const frame = error.stack
    ?.split("\n")
    .find((line) => line.includes(folder) && !line.includes("/node_modules/") && !line.includes(ownFolder));
  return frame?.slice(frame.indexOf(folder)).match(/^[^)\s]+?:\d+(?::\d+)?/)?.[0];
};

/**
 * Converts an exception of user code to an error that names the location in user code. Errors of this program keep
 * their text, kind and code.
 *
 * @param what name of the module and its function, such as `model.file my-model.ts: init`.
 * @param folder folder of the user's files.
 * @param at location to use if the stack contains no location in the user's files.
 */
export const userError = (error: unknown, what: string, folder: string, at?: string): SkeinError => {
  const known = error instanceof Error ? error : new Error(String(error));
  const found = locationOf(known, folder) ?? at;
  const locationText = found === undefined ? "" : ` (at ${found})`;
  if (known instanceof SkeinError) {
    const [rule, location] = known.message.split("\n    at "); // a shape mismatch contains its location
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

/** Calls user code. @throws the exception of the user code, converted by `userError`. */
export const callOwn = <Result>(what: string, folder: string, fn: () => Result): Result => {
  try {
    return fn();
  } catch (error) {
    throw userError(error, what, folder);
  }
};
