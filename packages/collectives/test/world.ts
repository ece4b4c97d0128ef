import { bytesPerElement, type CollectiveKind, type DType, NdArray, type Reduction } from "@skein/tensor-core";
import type { Place, Schedule } from "../src/schedule.ts";

/** Elements of one rank's input and output for `n` of the request table. */
export const regionElements = (kind: CollectiveKind, worldSize: number, n: number): { input: number; output: number } => {
  switch (kind) {
    case "reduce-scatter":
      return { input: worldSize * n, output: n };
    case "all-gather":
      return { input: n, output: worldSize * n };
    case "all-to-all":
      return { input: worldSize * n, output: worldSize * n };
    case "barrier":
      return { input: 0, output: 0 };
    default:
      return { input: n, output: n };
  }
};

/** Small integers, exact in every dtype even after a sum over 16 ranks; they differ by rank and place. */
export const operand = (rank: number, count: number, dtype: DType): number[] =>
  Array.from(
    { length: count },
    (_, i) => ((i * 7 + rank * 5 + Math.floor(i / 11)) % 13) - (dtype === "u32" || dtype === "u8" || dtype === "bool" ? 0 : 6),
  ).map((value) => (dtype === "bool" ? value & 1 : value));

export const toBytes = (values: number[], dtype: DType): Uint8Array => NdArray.from(values, [values.length], dtype).bytes();

export const fromBytes = (bytes: Uint8Array, dtype: DType): number[] => {
  const aligned = bytes.slice();
  const array = NdArray.zeros(dtype, [aligned.byteLength / bytesPerElement[dtype]]);
  array.bytes().set(aligned);
  return array.toNumbers();
};

/** What rank `rank` must end with, written down without any algorithm. */
export const closedForm = (
  kind: CollectiveKind,
  place: Place,
  inputs: readonly (readonly number[])[],
  reduction: Reduction = "sum",
): number[] => {
  const { rank, elementCount: n, root = 0, from } = place;
  const fold = (i: number): number => {
    const column = inputs.map((values) => values[i]!);
    return reduction === "sum"
      ? column.reduce((sum, value) => sum + value, 0)
      : reduction === "max"
        ? Math.max(...column)
        : Math.min(...column);
  };
  const indices = Array.from({ length: n }, (_, i) => i);
  switch (kind) {
    case "all-reduce":
      return indices.map(fold);
    case "reduce-scatter":
      return indices.map((i) => fold(rank * n + i));
    case "all-gather":
      return inputs.flat();
    case "all-to-all":
      return inputs.flatMap((values) => values.slice(rank * n, (rank + 1) * n));
    case "broadcast":
      return [...inputs[root]!];
    case "send-receive":
      return from === undefined ? indices.map(() => 0) : [...inputs[from]!];
    case "barrier":
      return [];
  }
};

/** Peers of a send-receive around the ring; harmless for the other kinds. */
export const placeOf = (rank: number, worldSize: number, elementCount: number, root = 0): Place => ({
  rank,
  worldSize,
  elementCount,
  root,
  to: (rank + 1) % worldSize,
  from: (rank + worldSize - 1) % worldSize,
});

/** One end of every message of all ranks, in a fixed order: each send has its receive when both lists are equal. */
export const messageEnds = (schedules: readonly Schedule[], action: "send" | "receive"): string[] =>
  schedules
    .flatMap((schedule, rank) =>
      schedule.rounds.flatMap((steps, round) =>
        steps.flatMap((step) => {
          if (step.action !== action) return [];
          const [from, to, count] = step.action === "send" ? [rank, step.peer, step.source.count] : [step.peer, rank, step.target.count];
          return [`round ${round}: ${from} to ${to}, ${count} elements`];
        }),
      ),
    )
    .sort();
