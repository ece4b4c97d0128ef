// Measures the selection of a gradient's k largest entries, and of all entries that reach a bound, compared with a
// plain read.
// Run: node bench/top-k.bench.ts
import { measure, printMeasurement } from "@skein/measuring";
import { normalArray } from "@skein/testing";
import { kernels } from "../src/kernel-table.ts";
import { type BoundKernel, openBench } from "./open-bench.ts";

const { bind, clear } = await openBench();

/**
 * Checks a selection of k elements: the positions are distinct and ascending, the values are correct, and no omitted
 * entry is larger. Takes linear time, whereas the reference would sort.
 */
const checkPicked = ({ inputs: [x], outputs: [values, bits] }: BoundKernel, k: number): void => {
  const indices = new Int32Array(bits!.buffer, bits!.byteOffset, k);
  const picked = new Set(indices);
  if (picked.size !== k || indices.some((index, i) => i > 0 && index <= indices[i - 1]!))
    throw new Error("positions are not distinct and ascending");
  if (indices.some((index, i) => x![index] !== values![i])) throw new Error("values do not stand at their positions");
  const least = values!.reduce((smallest, value) => Math.min(smallest, Math.abs(value)), Infinity);
  const missed = x!.findIndex((value, i) => Math.abs(value) > least && !picked.has(i));
  if (missed !== -1) throw new Error(`entry ${missed} is ${x![missed]}, larger than the least picked, ${least}`);
};

// Gradients are roughly normally distributed, so the data is a block of a million normal values, repeated with growing
// noise so that no two blocks have equal values.
const block = normalArray([1_000_000], 7).data;
const fill = (x: Float32Array): void => {
  for (let i = 0; i < x.length; i++) x[i] = (block[i % block.length] as number) * (1 + i * 1e-9);
};

for (const count of [1_000_000, 25_000_000]) {
  const work = { amount: 4 * count, unit: "B" };
  clear();
  const read = bind(kernels["sum"]!, [[count]], { dims: [0] });
  fill(read.inputs[0]!);
  read.call();
  const exact = read.inputs[0]!.reduce((sum, value) => sum + value, 0);
  if (!(Math.abs(read.outputs[0]![0]! - exact) <= 1e-5 * count))
    throw new Error(`the sum is ${read.outputs[0]![0]}, not ${exact}`);
  printMeasurement(`${count / 1e6}M elements, one plain read (sum)`, await measure(read.call), work);
  for (const density of [0.001, 0.01]) {
    clear();
    const k = Math.floor(density * count);
    const bound = bind(kernels["top-k"]!, [[count]], { k, sorted: false, by: "magnitude" });
    fill(bound.inputs[0]!);
    bound.call();
    checkPicked(bound, k);
    printMeasurement(`${count / 1e6}M elements, top-k of density ${density}`, await measure(bound.call), work);
    const least = bound.outputs[0]!.reduce((smallest, value) => Math.min(smallest, Math.abs(value)), Infinity);
    clear();
    const compact = bind(kernels["compact"]!, [[count], []], { capacity: k });
    fill(compact.inputs[0]!);
    compact.inputs[1]![0] = least;
    compact.call();
    checkPicked(compact, k);
    printMeasurement(
      `${count / 1e6}M elements, those that reach the k-th magnitude`,
      await measure(compact.call),
      work,
    );
  }
}
