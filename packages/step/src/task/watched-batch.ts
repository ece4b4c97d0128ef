import { SkeinError, Tensor } from "@skein/tensor-core";
import { leavesByPath, formatSpec } from "@skein/tensor-core/backend";
import type { BatchTree } from "./task.ts";

/**
 * Keys whose absence is not reported: properties that runtimes read on any object, and `mask`, which only evaluation
 * batches have.
 */
const ignoredKeys: readonly string[] = ["mask", "then", "toJSON", "dtype", "shape"];

const isBranch = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !(value instanceof Tensor);

/** Returns a proxy of a tree. The proxy calls `miss` with each path that is read but does not exist. */
const watched = <T extends object>(tree: T, at: string, miss: (path: string) => void): T =>
  new Proxy(tree, {
    get: (target, key, receiver): unknown => {
      const value: unknown = Reflect.get(target, key, receiver);
      if (typeof key !== "string") return value;
      const path = at === "" ? key : `${at}.${key}`;
      if (value === undefined && !ignoredKeys.includes(key)) miss(path);
      return isBranch(value) && Object.hasOwn(target, key) ? watched(value, path, miss) : value;
    },
  });

/**
 * Calls user code with a batch. If the code throws after it has read a missing path of the batch, the error also names
 * that path, because the missing path is the usual cause and the original error does not name it.
 *
 * @throws the exception of the code.
 */
export const withBatch = <Result>(batch: BatchTree, fn: (batch: BatchTree) => Result): Result => {
  const missingPaths = new Set<string>();
  try {
    return fn(watched(batch, "", (path) => missingPaths.add(path)));
  } catch (error) {
    if (missingPaths.size > 0 && error instanceof Error) {
      const there = [...leavesByPath<Tensor>(batch)].map(([path, leaf]) => `${path} ${formatSpec(leaf)}`);
      const [first] = missingPaths;
      const hint = `${first} was read from the batch, which has ${there.join(", ")}`;
      const message = error.message.split("\n");
      message[0] = `${message[0]} (${hint})`;
      const named =
        error instanceof SkeinError
          ? new SkeinError(error.kind, error.code, message.join("\n"), { cause: error })
          : Object.assign(new Error(message.join("\n"), { cause: error }), { name: error.name });
      if (error.stack !== undefined) named.stack = error.stack;
      throw named;
    }
    throw error;
  }
};
