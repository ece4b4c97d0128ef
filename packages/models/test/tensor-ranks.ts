import { flattenTree, leafPaths, type MapTree, type Mesh, NdArray, type Tensor } from "@skein/tensor-core";
import { runOnRanks } from "@skein/testing";
import { expect } from "vitest";
import type { Model } from "../src/index.ts";

/**
 * Sizes of a mesh of ranks. Ranks along "data" have different samples; ranks along "tensor", the innermost axis, have
 * the same samples.
 */
export interface Ranks {
  readonly data: number;
  readonly tensor: number;
}

/** Runs a traced function on all ranks of a mesh in f64, with separate arguments per rank. */
export const onMesh = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  { data, tensor }: Ranks,
  argumentsOf: (place: { readonly data: number; readonly tensor: number }) => readonly unknown[],
): MapTree<Result, Tensor, NdArray>[] => {
  const places = Array.from({ length: data * tensor }, (_, rank) => ({
    data: Math.floor(rank / tensor),
    tensor: rank % tensor,
  }));
  const mesh: Mesh = { data, tensor };
  return runOnRanks(fn, places.map(argumentsOf) as never, {
    mesh,
    groupsOf: (rank) => ({
      data: [...places.keys()].filter((other) => places[other]!.tensor === places[rank]!.tensor),
      tensor: [...places.keys()].filter((other) => places[other]!.data === places[rank]!.data),
    }),
  });
};

/** Returns the rows from `first` up to, but not including, `end` along dimension 0. */
export const rowsOf = (array: NdArray, first: number, end: number): NdArray => {
  const each = array.toNumbers().length / array.shape[0]!;
  return NdArray.from(
    array.toNumbers().slice(first * each, end * each),
    [end - first, ...array.shape.slice(1)],
    array.dtype,
  );
};

/** Concatenates matrices along a dimension. */
const beside = (arrays: readonly NdArray[], dim: number): NdArray => {
  const [rows, columns] = arrays[0]!.shape as [number, number];
  const numbers = arrays.map((array) => array.toNumbers());
  return dim === 0
    ? NdArray.from(numbers.flat(), [rows * arrays.length, columns], "f32")
    : NdArray.from(
        Array.from({ length: rows }, (_, row) =>
          numbers.flatMap((own) => own.slice(row * columns, (row + 1) * columns)),
        ).flat(),
        [rows, columns * arrays.length],
        "f32",
      );
};

const meanOf = (arrays: readonly NdArray[], divisor = 1): NdArray => {
  const numbers = arrays.map((array) => array.toNumbers());
  const { shape } = arrays[0]!;
  return NdArray.from(
    numbers[0]!.map((_, i) => numbers.reduce((sum, own) => sum + own[i]!, 0) / (arrays.length * divisor)),
    shape,
    "f32",
  );
};

/**
 * Returns the gradients of the mean loss over all ranks by path: each rank's gradients are divided by the number of
 * ranks that share a shard, then averaged over the ranks that hold the same shard.
 *
 * @param trees Tree of each rank, in rank order. With `scale: "none"` the trees contain parameters, which are assembled
 * without scaling.
 */
export const wholeTree = (
  trees: readonly unknown[],
  { data, tensor }: Ranks,
  { sharding }: Pick<Model, "sharding">,
  scale: "gradients" | "none" = "gradients",
): Map<string, NdArray> => {
  const leaves = trees.map((tree) => flattenTree<NdArray>(tree).leaves);
  return new Map(
    leafPaths(trees[0]).map((path, i) => {
      const own = leaves.map((all) => all[i]!);
      const [shard] = sharding?.(path) ?? [];
      if (shard === undefined) return [path, meanOf(own)];
      const parts = Array.from({ length: tensor }, (_, part) =>
        meanOf(
          Array.from({ length: data }, (__, replica) => own[replica * tensor + part]!),
          scale === "none" ? 1 : tensor,
        ),
      );
      return [path, beside(parts, shard.dim)];
    }),
  );
};

/** Compares arrays by path, relative to the scale of each array, because some gradients are about 1e-6. */
export const expectSame = (own: ReadonlyMap<string, NdArray>, wanted: ReadonlyMap<string, NdArray>): void => {
  expect([...own.keys()]).toEqual([...wanted.keys()]);
  for (const [path, array] of wanted) {
    const [numbers, expected] = [own.get(path)!.toNumbers(), array.toNumbers()];
    expect(own.get(path)!.shape, path).toEqual(array.shape);
    const scale = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    numbers.forEach((value, i) =>
      expect(Math.abs(value - expected[i]!) / (scale || 1), `${path} ${i}`).toBeLessThan(1e-6),
    );
  }
};
