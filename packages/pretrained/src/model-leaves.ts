import {
  flattenTree,
  InvariantError,
  leafPaths,
  type Shape,
  type Tensor,
  trace,
  type TreeStructure,
} from "@skein/tensor-core";
import type { DimOrder, NameRow, Opened } from "./architecture.ts";
import { inverseOrder, reorderedShape } from "./dimension-order.ts";

/** A parameter, or something that the model moves itself, and what it is in files. */
export interface ModelLeaf {
  /** In the tree of parameters and state: `params.blocks.0.up.weight`. */
  readonly path: string;
  /** Of the model. */
  readonly shape: Shape;
  /** In files. */
  readonly name: string;
  readonly nameShape: Shape;
  /** From files to the model; absent where they agree. */
  readonly order?: DimOrder;
}

export interface ModelLeaves {
  /** In the order of the tree. */
  readonly leaves: readonly ModelLeaf[];
  /** Of `{ params, state }`. */
  readonly structure: TreeStructure;
}

const numbers = /(?<=^|\.)\d+(?=\.|$)/g;

/**
 * Find what a model keeps, and its names in files, without making any of it.
 *
 * Cost: the model's `init` is traced, not run.
 */
export const modelLeaves = ({ model, params, state = [] }: Opened): ModelLeaves => {
  const rows = new Map<string, NameRow>([
    ...params.map((row): [string, NameRow] => [`params.${row[0]}`, row]),
    ...state.map((row): [string, NameRow] => [`state.${row[0]}`, row]),
  ]);
  let found: ModelLeaves | undefined;
  trace(
    (key: Tensor) => {
      const tree = model.init(key);
      const { leaves, structure } = flattenTree<Tensor>(tree);
      const paths = leafPaths(tree);
      found = {
        structure,
        leaves: leaves.map(({ shape }, i) => leafOf(rows, paths[i]!, shape)),
      };
      return key;
    },
    [{ dtype: "u32", shape: [2] }],
  );
  return found!;
};

const leafOf = (rows: ReadonlyMap<string, NameRow>, path: string, shape: Shape): ModelLeaf => {
  const row = rows.get(path.replaceAll(numbers, "*"));
  if (row === undefined) throw new InvariantError(`${path} of the model has no name in files`);
  const [, pattern, order] = row;
  const own = path.match(numbers) ?? [];
  let at = 0;
  const name = pattern.replaceAll("*", () => own[at++]!);
  return order === undefined
    ? { path, shape, name, nameShape: shape }
    : { path, shape, name, nameShape: reorderedShape(shape, inverseOrder(order)), order };
};
