import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { SkeinError } from "@skein/tensor-core";
import { ModuleError } from "../errors.ts";

/** Of this program, which a user's folder may hold: under `node_modules`, or where it is developed. */
const ownFolder = dirname(fileURLToPath(import.meta.url));

/** The first place in the user's own files that a stack names: the last frames of a fault lie in ours, or in Node's. */
export const placeOf = (error: Error, folder: string): string | undefined => {
  const frame = error.stack
    ?.split("\n")
    .find((line) => line.includes(folder) && !line.includes("/node_modules/") && !line.includes(ownFolder));
  return frame?.slice(frame.indexOf(folder)).match(/^[^)\s]+?:\d+(?::\d+)?/)?.[0];
};

/**
 * What code of a user's threw, as a fault of the user's that names the place in it. Errors of ours say already what is
 * wrong, and keep their words, kind and code.
 *
 * @param what the module and what it was doing, such as `model.file my-model.ts: init`. @param folder that the user's
 * files lie in. @param at the place, where the stack does not say it.
 */
export const userError = (error: unknown, what: string, folder: string, at?: string): SkeinError => {
  const known = error instanceof Error ? error : new Error(String(error));
  const found = placeOf(known, folder) ?? at;
  const place = found === undefined ? "" : ` (at ${found})`;
  if (known instanceof SkeinError) {
    const [rule, said] = known.message.split("\n    at "); // a shape that does not fit says where, in a library too
    const isTold = said !== undefined && (place === "" || !said.includes("/node_modules/"));
    const named = new SkeinError(known.kind, known.code, `${what}: ${isTold ? known.message : `${rule}${place}`}`, {
      cause: error,
    });
    if (known.stack !== undefined) named.stack = known.stack;
    return named;
  }
  return new ModuleError(`${what}: ${known.name}: ${known.message.split("\n")[0]}${place}; mend it there`, {
    cause: error,
  });
};

/** Call code of a user's. @throws what it throws, as a fault of the user's. */
export const callOwn = <Result>(what: string, folder: string, fn: () => Result): Result => {
  try {
    return fn();
  } catch (error) {
    throw userError(error, what, folder);
  }
};
