import { ArgumentError } from "./errors.ts";

/** Nested arrays and plain objects with tensors as leaves (symbolic, on a device, or on the host). */
export type Tree<Leaf> = Leaf | readonly Tree<Leaf>[] | { readonly [key: string]: Tree<Leaf> };

/** Tree type `T` with every leaf of type `From` replaced by `To`. */
export type MapTree<T, From, To> = T extends From
  ? To
  : T extends readonly (infer Item)[]
    ? number extends T["length"]
      ? readonly MapTree<Item, From, To>[] // spelled out, because a mapped type over a recursive list never terminates
      : { [K in keyof T]: MapTree<T[K], From, To> }
    : T extends object
      ? { [K in keyof T]: MapTree<T[K], From, To> }
      : T;

/** Structure of a tree without its leaves. Plain data; trees of the same structure have equal values. */
export type TreeStructure =
  | "leaf"
  | { readonly list: readonly TreeStructure[] }
  | { readonly record: readonly (readonly [string, TreeStructure])[] };

const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

const isLeaf = (value: unknown): boolean =>
  typeof value !== "object" ||
  value === null ||
  (!Array.isArray(value) && (!isPlainObject(value) || ("dtype" in value && "shape" in value)));

/**
 * Returns the leaves of a tree in a fixed order (record keys sorted), and the tree structure, from which
 * `unflattenTree` rebuilds the tree.
 *
 * @example
 * ```ts
 * const { leaves, structure } = flattenTree<number>({ a: 1, b: [2, 3] });
 * console.log(leaves, unflattenTree(structure, [10, 20, 30])); // [1, 2, 3] { a: 10, b: [20, 30] }
 * ```
 */
export const flattenTree = <Leaf>(tree: unknown): { leaves: Leaf[]; structure: TreeStructure } => {
  const leaves: Leaf[] = [];
  const visit = (value: unknown): TreeStructure => {
    if (isLeaf(value)) {
      leaves.push(value as Leaf);
      return "leaf";
    }
    if (Array.isArray(value)) return { list: value.map(visit) };
    const record = value as Record<string, unknown>;
    return {
      record: Object.keys(record)
        .sort()
        .map((key) => [key, visit(record[key])] as const),
    };
  };
  const structure = visit(tree);
  return { leaves, structure };
};

/**
 * Returns the leaves of a tree with the expected structure, in flattening order; `undefined` if the structure differs.
 * Allocates only the returned list, so the call is cheap enough for every step.
 */
export const leavesAlong = <Leaf>(structure: TreeStructure, tree: unknown): Leaf[] | undefined => {
  const leaves: Leaf[] = [];
  const visit = (node: TreeStructure, value: unknown): boolean => {
    if (node === "leaf") return isLeaf(value) && leaves.push(value as Leaf) > 0;
    if (isLeaf(value)) return false;
    if ("list" in node)
      return (
        Array.isArray(value) &&
        value.length === node.list.length &&
        node.list.every((child, i) => visit(child, value[i]))
      );
    if (Array.isArray(value)) return false;
    let unmatched = node.record.length;
    for (const _ in value as object) unmatched--;
    return (
      unmatched === 0 &&
      node.record.every(
        ([key, child]) => Object.hasOwn(value as object, key) && visit(child, (value as Record<string, unknown>)[key]),
      )
    );
  };
  return visit(structure, tree) ? leaves : undefined;
};

/**
 * Builds the tree with the given structure and leaves: the inverse of `flattenTree`.
 *
 * @throws ArgumentError if the number of leaves does not match the structure.
 * @example
 * ```ts
 * const { structure } = flattenTree({ a: 1, b: [2, 3] });
 * console.log(unflattenTree(structure, [10, 20, 30])); // { a: 10, b: [20, 30] }
 * ```
 */
export const unflattenTree = <T>(structure: TreeStructure, leaves: readonly unknown[]): T => {
  let next = 0;
  const build = (node: TreeStructure): unknown => {
    if (node === "leaf") return leaves[next++];
    if ("list" in node) return node.list.map(build);
    return Object.fromEntries(node.record.map(([key, child]) => [key, build(child)]));
  };
  const tree = build(structure) as T;
  if (next !== leaves.length)
    throw new ArgumentError(`a tree of ${next} leaves cannot be built from ${leaves.length} leaves`);
  return tree;
};

/**
 * Returns the path of each leaf, such as `blocks.0.attention.query`, in flattening order.
 *
 * @example
 * ```ts
 * console.log(leafPaths({ a: 1, b: [2, 3] })); // ['a', 'b.0', 'b.1']
 * ```
 */
export const leafPaths = (tree: unknown): string[] => {
  const paths: string[] = [];
  const visit = (node: TreeStructure, path: string): void => {
    if (node === "leaf") paths.push(path);
    else if ("list" in node) node.list.forEach((child, i) => visit(child, path === "" ? `${i}` : `${path}.${i}`));
    else for (const [key, child] of node.record) visit(child, path === "" ? key : `${path}.${key}`);
  };
  visit(flattenTree(tree).structure, "");
  return paths;
};

/** Returns a map from path to leaf, in flattening order. */
export const leavesByPath = <Leaf>(tree: unknown): Map<string, Leaf> => {
  const { leaves } = flattenTree<Leaf>(tree);
  return new Map(leafPaths(tree).map((path, i) => [path, leaves[i]!]));
};

/**
 * Applies `fn` to each leaf of a tree. Returns a tree of the results.
 *
 * @example
 * ```ts
 * console.log(mapTree({ a: 1, b: [2, 3] }, (leaf: number) => leaf * 10)); // { a: 10, b: [20, 30] }
 * ```
 */
export const mapTree = <T, From, To>(tree: T, fn: (leaf: From, path: string) => To): MapTree<T, From, To> => {
  const { leaves, structure } = flattenTree<From>(tree);
  const paths = leafPaths(tree);
  return unflattenTree(
    structure,
    leaves.map((leaf, i) => fn(leaf, paths[i]!)),
  );
};

/**
 * Applies `fn` to the leaves of several trees with the same structure; the result has the structure of the first tree.
 *
 * @example
 * ```ts
 * console.log(zipTrees((a: number, b: number) => a + b, { x: 1, y: 2 }, { x: 10, y: 20 })); // { x: 11, y: 22 }
 * ```
 */
export const zipTrees = <T, Result = T>(fn: (...leaves: never[]) => unknown, first: T, ...rest: unknown[]): Result => {
  const { leaves, structure } = flattenTree<never>(first);
  const others = rest.map((tree, i) => {
    const flat = flattenTree<never>(tree);
    if (JSON.stringify(flat.structure) !== JSON.stringify(structure)) {
      throw new ArgumentError(
        `tree ${i + 2} of ${rest.length + 1} has leaves [${leafPaths(tree).join(", ")}], the first has [${leafPaths(first).join(", ")}]; all trees must have the same structure`,
      );
    }
    return flat.leaves;
  });
  return unflattenTree(
    structure,
    leaves.map((leaf, i) => fn(leaf, ...others.map((other) => other[i]!))),
  );
};
