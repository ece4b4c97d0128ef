import {
  type ArrayTree,
  flattenTree,
  interpretWorld,
  NdArray,
  type ReferenceArray,
  type Tensor,
  trace,
  type MapTree,
  unflattenTree,
} from "@skein/tensor-core";

const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});
const fromReference = ({ spec, data }: ReferenceArray): NdArray => NdArray.from(data, spec.shape, spec.dtype);

/** Run one traced function on all ranks of the axis "data", each with its own arguments, in lockstep on the reference. */
export const runWorld = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
): MapTree<Result, Tensor, NdArray>[] => {
  const { graph, outputs } = trace(fn, ranks[0]! as never, { mesh: { data: ranks.length } });
  const inputs = ranks.map((args) => flattenTree<NdArray>(args).leaves.map(toReference));
  return interpretWorld(graph, inputs).map((results) => unflattenTree(outputs, results.map(fromReference)));
};
