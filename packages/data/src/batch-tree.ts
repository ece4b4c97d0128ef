import type { Tree } from "@skein/tensor-core";
import { DataError } from "./errors.ts";

/** Leaves by path. A path consists of names and list indices joined with dots, such as `query.tokens` and `views.0`. */
export type Leaves<Leaf> = { readonly [path: string]: Leaf };

/** A tree whose root has named children. */
export type NamedTree<Leaf> = { readonly [name: string]: Tree<Leaf> };

type Entry<Leaf> = readonly [path: string, segments: readonly string[], leaf: Leaf];

const branch = <Leaf>(entries: readonly Entry<Leaf>[], depth: number): readonly (readonly [string, Tree<Leaf>])[] =>
  [...Map.groupBy(entries, ([, segments]) => segments[depth]!)].map(([name, below]) => {
    const [first] = below as [Entry<Leaf>, ...Entry<Leaf>[]];
    const ends = below.find(([, segments]) => segments.length === depth + 1);
    if (ends === undefined) return [name, listed(branch(below, depth + 1))];
    const other = below.find((entry) => entry !== ends);
    if (other !== undefined)
      throw new DataError(
        `fields "${ends[0]}" and "${other[0]}" cannot both exist: a path of a tree holds either an array or a branch; rename one of them`,
      );
    return [name, first[2]];
  });

const listed = <Leaf>(children: readonly (readonly [string, Tree<Leaf>])[]): Tree<Leaf> => {
  const byName = new Map(children);
  return children.every((_, i) => byName.has(`${i}`))
    ? children.map((_, i) => byName.get(`${i}`)!)
    : Object.fromEntries(children);
};

/**
 * Builds a tree from leaves by path. Models receive fields, specs or arrays of a batch as such trees. Below the root,
 * children named 0, 1, …, n − 1 become a list.
 *
 * @throws DataError if one path is a prefix of another.
 * @example
 * ```ts
 * const [tokens, length, labels] = [[1, 2], [2], [0]].map((numbers) => NdArray.from(numbers));
 * const tree = batchTree({ "query.tokens": tokens!, "query.length": length!, labels: labels! });
 * console.log(Object.keys(tree), Object.keys(tree["query"]!)); // ['query', 'labels'] ['tokens', 'length']
 * ```
 */
export const batchTree = <Leaf>(leaves: Leaves<Leaf>): NamedTree<Leaf> =>
  Object.fromEntries(
    branch(
      Object.entries(leaves).map(([path, leaf]) => [path, path.split("."), leaf]),
      0,
    ),
  );
