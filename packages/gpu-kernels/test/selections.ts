import type { NdArray } from "@skein/tensor-core";
import type { WebGpuBackend } from "../src/index.ts";
import type { DeviceFacts } from "../src/kernel.ts";
import { runNode } from "./run-node.ts";

type By = "value" | "magnitude";

/**
 * Returns the positions of the k largest elements of a row, from one sort of its numbers. Fast enough for ten million
 * elements.
 */
const bestOf = (row: Float32Array, k: number, sorted: boolean, by: By): number[] => {
  const ranks = row.map((value) => (by === "magnitude" ? Math.abs(value) : value) + 0); // -0 becomes 0
  // Typed arrays sort NaN to the end.
  const threshold = ranks.slice().sort()[row.length - k]!;
  const above: number[] = [];
  const equal: number[] = [];
  for (let i = 0; i < ranks.length; i++) {
    if (Object.is(ranks[i], threshold)) equal.push(i);
    else if (ranks[i]! > threshold || Number.isNaN(ranks[i])) above.push(i);
  }
  const best = [...above, ...equal.slice(0, k - above.length)];
  const up = (i: number): number => (Number.isNaN(ranks[i]!) ? Infinity : ranks[i]!);
  if (!sorted) return best.sort((a, b) => a - b);
  return best.sort(
    (a, b) =>
      Number(Number.isNaN(ranks[b]!)) - Number(Number.isNaN(ranks[a]!)) || (up(a) === up(b) ? a - b : up(b) - up(a)),
  );
};

/** Compares a selection with the result of a sort, bitwise. */
export const checkSelection = async (
  backend: WebGpuBackend,
  x: NdArray,
  k: number,
  sorted: boolean,
  by: By,
  options: { facts?: DeviceFacts; runs?: 1 | 2 } = {},
): Promise<void> => {
  const [values, indices] = await runNode(backend, "top-k", [x], { k, sorted, by }, options);
  const size = x.shape.at(-1)!;
  const data = x.data as Float32Array;
  for (let row = 0; row < data.length / size; row++) {
    const best = bestOf(data.subarray(row * size, (row + 1) * size), k, sorted, by);
    const wrong = best.findIndex(
      (place, i) =>
        indices!.data[row * k + i] !== place || !Object.is(values!.data[row * k + i], data[row * size + place]),
    );
    if (wrong >= 0)
      throw new Error(
        `row ${row} of [${x.shape.join()}], k = ${k}: rank ${wrong} is ${values!.data[row * k + wrong]} at ${indices!.data[row * k + wrong]}, not ${data[row * size + best[wrong]!]} at ${best[wrong]}`,
      );
  }
};
