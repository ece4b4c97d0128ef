import { ModuleError } from "@skein/cli/node";
import { Tensor, type TensorSpec } from "@skein/tensor-core";
import { excerpt, formatSpec, leavesByPath, sameSpec } from "@skein/tensor-core/backend";

/**
 * Requires that all leaves of a tree from user code are tensors. @throws ModuleError that names the first leaf that is
 * not a tensor.
 */
export const requireTensors = (tree: unknown, what: string): void => {
  for (const [path, leaf] of leavesByPath<unknown>(tree))
    if (!(leaf instanceof Tensor))
      throw new ModuleError(
        `${what} returned ${path === "" ? "" : `as ${excerpt(path)} `}${excerpt(leaf)}, but must return a tree of tensors: objects and lists of them; make it a tensor, such as full([], 0)`,
      );
};

/**
 * Requires that a tree from user code has the same paths, shapes and dtypes as another tree.
 *
 * @param like description of the expected tree.
 * @throws ModuleError that names the first differing path.
 */
export const requireLike = (
  tree: unknown,
  expected: unknown,
  { what, like }: { readonly what: string; readonly like: string },
): void => {
  requireTensors(tree, what);
  const [actual, specs] = [leavesByPath<TensorSpec>(tree), leavesByPath<TensorSpec>(expected)];
  const named = (path: string): string => (path === "" ? "" : ` for ${path}`);
  for (const [path, spec] of specs) {
    const own = actual.get(path);
    if (own === undefined || !sameSpec(own, spec))
      throw new ModuleError(
        `${what} returned${named(path)} ${own === undefined ? "nothing" : formatSpec(own)}, but must return ${formatSpec(spec)}, as ${like}`,
      );
  }
  const extra = [...actual.keys()].find((path) => !specs.has(path));
  if (extra !== undefined)
    throw new ModuleError(
      `${what} returned ${extra === "" ? "one tensor" : excerpt(extra)}, which is missing in ${like}; remove it`,
    );
};
