import { type Graph, InvariantError, type TensorSpec } from "@skein/tensor-core";
import type { Node, ParamValue, ValueRef } from "@skein/tensor-core/backend";
import { affineOf, type Dim } from "./affine.ts";
import { OnnxError } from "./errors.ts";

/** Value of a node parameter, in which numbers may be affine functions of the batch size. */
export type MergedValue =
  | Dim
  | string
  | boolean
  | null
  | readonly MergedValue[]
  | { readonly [key: string]: MergedValue };

export interface MergedSpec {
  readonly dtype: TensorSpec["dtype"];
  readonly shape: readonly Dim[];
}

/** A graph node that is valid for any batch size. */
export interface MergedNode {
  readonly id: number;
  readonly op: string;
  readonly scope: string;
  readonly inputs: readonly ValueRef[];
  readonly params: { readonly [key: string]: MergedValue };
  readonly specs: readonly MergedSpec[];
}

const rejectNonAffine = (what: string): never => {
  throw new OnnxError(
    `${what} is not an affine function of the batch size; export for a single size, such as batch: 1`,
  );
};

/** Merges the values of a node parameter at the three batch sizes into one value. */
const mergeValues = (values: readonly ParamValue[], what: string): MergedValue => {
  const [first] = values;
  if (typeof first === "number") return affineOf(values as readonly number[]) ?? rejectNonAffine(what);
  if (Array.isArray(first)) {
    const lists = values as readonly (readonly ParamValue[])[];
    if (lists.some((list) => list.length !== first.length)) rejectNonAffine(what);
    return first.map((_, i) =>
      mergeValues(
        lists.map((list) => list[i]!),
        what,
      ),
    );
  }
  if (typeof first === "object" && first !== null) {
    const maps = values as readonly { readonly [key: string]: ParamValue }[];
    return Object.fromEntries(
      Object.keys(first).map((key) => [
        key,
        mergeValues(
          maps.map((map) => map[key]!),
          `${what}.${key}`,
        ),
      ]),
    );
  }
  if (values.some((value) => value !== first)) rejectNonAffine(what);
  return first as MergedValue;
};

/**
 * Merges the graphs of a function, traced at the batch sizes `probes`, into one graph for all batch sizes. A single
 * graph is returned unchanged.
 *
 * @throws OnnxError if the graphs differ in anything except sizes.
 */
export const mergeTraces = (graphs: readonly Graph[]): MergedNode[] => {
  const [first] = graphs;
  if (first === undefined) throw new InvariantError("no graph was given to be merged");
  const nodesAt = (index: number): Node[] => graphs.map((graph) => graph.nodes[index]!);
  if (graphs.some(({ nodes }) => nodes.length !== first.nodes.length)) rejectNonAffine("the number of operators");
  return first.nodes.map((node, index) => {
    const { id, op, scope, inputs } = node;
    const same = nodesAt(index);
    const what = `${op} #${id}${scope === "" ? "" : ` of ${scope}`}`;
    const isSame = ({ op: other, inputs: refs }: Node): boolean =>
      other === op && JSON.stringify(refs) === JSON.stringify(inputs);
    if (!same.every(isSame)) rejectNonAffine(`the kind of ${what}`);
    if (graphs.length === 1) return node as MergedNode;
    return {
      id,
      op,
      scope,
      inputs,
      params: mergeValues(
        same.map(({ params }) => params),
        `a parameter of ${what}`,
      ) as MergedNode["params"],
      specs: node.specs.map(({ dtype, shape }, output) => ({
        dtype,
        shape: shape.map(
          (_, dim) =>
            affineOf(same.map(({ specs }) => specs[output]!.shape[dim]!)) ??
            rejectNonAffine(`dimension ${dim} of ${what}`),
        ),
      })),
    };
  });
};
