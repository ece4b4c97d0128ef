import { SkeinError, Tensor } from "@skein/tensor-core";
import { leavesByPath, formatSpec } from "@skein/tensor-core/backend";
import type { BatchTree } from "./task.ts";

/** What is asked of every object now and then, and `mask`, which only batches of an evaluation have. */
const passedOver: readonly string[] = ["mask", "then", "toJSON", "dtype", "shape"];

const isBranch = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !(value instanceof Tensor);

/** The same tree, which tells `miss` of the paths that are read of it and are not there. */
const watched = <T extends object>(tree: T, at: string, miss: (path: string) => void): T =>
  new Proxy(tree, {
    get: (target, key, receiver): unknown => {
      const value: unknown = Reflect.get(target, key, receiver);
      if (typeof key !== "string") return value;
      const path = at === "" ? key : `${at}.${key}`;
      if (value === undefined && !passedOver.includes(key)) miss(path);
      return isBranch(value) && Object.hasOwn(target, key) ? watched(value, path, miss) : value;
    },
  });

/**
 * Call code of a user's with a batch. Where it throws after it has read what a batch does not have, that is most often
 * why, and the error says so too: it itself tells of `undefined` alone.
 *
 * @throws what it throws.
 */
export const withBatch = <Result>(batch: BatchTree, fn: (batch: BatchTree) => Result): Result => {
  const missed = new Set<string>();
  try {
    return fn(watched(batch, "", (path) => missed.add(path)));
  } catch (error) {
    if (missed.size > 0 && error instanceof Error) {
      const there = [...leavesByPath<Tensor>(batch)].map(([path, leaf]) => `${path} ${formatSpec(leaf)}`);
      const [first] = missed;
      const hint = `${first} was read of the batch, which has ${there.join(", ")}`;
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
