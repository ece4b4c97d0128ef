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

/** A leaf of a model's parameters or state, and the corresponding tensor in files. */
export interface ModelLeaf {
  /** Path in the tree of parameters and state, such as `params.blocks.0.up.weight`. */
  readonly path: string;
  /** Shape of the leaf in the model. */
  readonly shape: Shape;
  /** Name of the tensor in files. `nameShape` is its shape in files. */
  readonly name: string;
  readonly nameShape: Shape;
  /** Permutation from file dimensions to model dimensions. Absent: dimensions have the same order. */
  readonly order?: DimOrder;
}

export interface ModelLeaves {
  /** Leaves, in the order of the tree. */
  readonly leaves: readonly ModelLeaf[];
  /** Structure of the tree `{ params, state }`. */
  readonly structure: TreeStructure;
}

const numbers = /(?<=^|\.)\d+(?=\.|$)/g;

/**
 * Returns the leaves of a model and their names in files, without initializing the parameters.
 *
 * Cost: the `init` function of the model is traced, but not run.
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
