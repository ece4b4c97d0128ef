import { Tensor, type TensorSpec } from "@skein/tensor-core";
import { excerpt, formatSpec, leavesByPath, sameSpec } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";

/** A tree of somebody else's. @throws ModuleError for a leaf that is no tensor. */
export const requireTensors = (tree: unknown, what: string): void => {
  for (const [path, leaf] of leavesByPath<unknown>(tree))
    if (!(leaf instanceof Tensor))
      throw new ModuleError(
        `${what} gave ${path === "" ? "" : `as ${excerpt(path)} `}${excerpt(leaf)}, but must give a tree of tensors: objects and lists of them; make it a tensor, such as full([], 0)`,
      );
};

/**
 * Require that a tree of somebody else's is like another one: the same paths, shapes and dtypes.
 *
 * @param like what it must be like, in words.
 * @throws ModuleError that names the first path at which it is not.
 */
export const requireLike = (
  tree: unknown,
  wanted: unknown,
  { what, like }: { readonly what: string; readonly like: string },
): void => {
  requireTensors(tree, what);
  const [given, specs] = [leavesByPath<TensorSpec>(tree), leavesByPath<TensorSpec>(wanted)];
  const named = (path: string): string => (path === "" ? "" : ` for ${path}`);
  for (const [path, spec] of specs) {
    const own = given.get(path);
    if (own === undefined || !sameSpec(own, spec))
      throw new ModuleError(
        `${what} gave${named(path)} ${own === undefined ? "nothing" : formatSpec(own)}, but must give ${formatSpec(spec)}, as ${like}`,
      );
  }
  const extra = [...given.keys()].find((path) => !specs.has(path));
  if (extra !== undefined)
    throw new ModuleError(
      `${what} gave ${extra === "" ? "one tensor" : excerpt(extra)}, which is not there in ${like}; leave it out`,
    );
};
