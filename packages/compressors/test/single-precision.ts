import {
  type ArrayTree,
  flattenTree,
  interpretWorld,
  type MapTree,
  NdArray,
  type Operator,
  type OperatorTable,
  operators,
  type Tensor,
  trace,
  unflattenTree,
} from "@skein/tensor-core";
import { toReference } from "./world.ts";

/** The reference works in f64; here what each node gives is rounded to f32, so that what rests on rounding errors shows. */
const rounded = (operator: Operator): Operator => ({
  ...operator,
  reference: (inputs, params, specs) =>
    operator.reference(inputs, params, specs).map((data, i) => (specs[i]!.dtype === "f32" ? Float64Array.from(data, Math.fround) : data)),
});

const table: OperatorTable = Object.fromEntries(Object.entries(operators).map(([name, operator]) => [name, rounded(operator)]));

/** `runWorld` in single precision. */
export const runSingle = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
): MapTree<Result, Tensor, NdArray>[] => {
  const { graph, outputs } = trace(fn, ranks[0]! as never, { mesh: { data: ranks.length } });
  const inputs = ranks.map((args) => flattenTree<NdArray>(args).leaves.map(toReference));
  return interpretWorld(graph, inputs, undefined, table).map((results) =>
    unflattenTree(
      outputs,
      results.map(({ spec, data }) => NdArray.from(data, spec.shape, spec.dtype)),
    ),
  );
};
