import { bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { reducible } from "../src/arithmetic.ts";
import { execute, scratchBytes } from "../src/execute.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import type { Algorithm } from "../src/schedule.ts";
import { memoryWorld } from "../src/transport/memory-transport.ts";
import { closedForm, fromBytes, operand, placeOf, regionElements, toBytes } from "./world.ts";

interface Setting {
  readonly worldSize: number;
  readonly n: number;
  readonly dtype?: DType;
  readonly reduction?: Reduction;
  readonly sharesMemory?: boolean;
  readonly inPlace?: boolean;
  readonly root?: number;
  readonly values?: (rank: number, count: number) => number[];
}

/** Run every rank of one collective; returns inputs (before and after) and outputs. */
const runWorld = async (
  algorithm: Algorithm,
  setting: Setting,
): Promise<{ inputs: number[][]; after: number[][]; outputs: Uint8Array[] }> => {
  const { worldSize, n, dtype = "f32", reduction = "sum", sharesMemory = false, inPlace = false, root = 0, values } = setting;
  const counts = regionElements(algorithm.kind, worldSize, n);
  const inputs = Array.from({ length: worldSize }, (_, rank) => (values ? values(rank, counts.input) : operand(rank, counts.input, dtype)));
  const input = inputs.map((numbers) => toBytes(numbers, dtype));
  const output = inPlace ? input : inputs.map(() => new Uint8Array(counts.output * bytesPerElement[dtype]).fill(0x55));
  await Promise.all(
    memoryWorld(worldSize, { sharesMemory }).map((transport, rank) => {
      const schedule = algorithm.schedule(placeOf(rank, worldSize, n, root));
      const scratch = new Uint8Array(scratchBytes(schedule, dtype));
      return execute(
        schedule,
        { input: input[rank]!, output: output[rank]!, scratch, dtype, reduction, tag: 7 },
        transport,
        plainArithmetic(),
      );
    }),
  );
  return { inputs, after: input.map((bytes) => fromBytes(bytes, dtype)), outputs: output };
};

const reduces = (algorithm: Algorithm): boolean => algorithm.kind === "all-reduce" || algorithm.kind === "reduce-scatter";
const worldSizes = Array.from({ length: 16 }, (_, i) => i + 1);

describe.each(algorithms.map((algorithm) => ({ name: algorithm.name, algorithm })))("$name", ({ algorithm }) => {
  describe.each([false, true])("lending the sender's own memory: %s", (sharesMemory) => {
    test.each(worldSizes)("equals the closed form on %i ranks", async (worldSize) => {
      for (const n of new Set([0, 1, worldSize - 1, worldSize, worldSize + 1, 50])) {
        const { inputs, after, outputs } = await runWorld(algorithm, { worldSize, n, sharesMemory, root: worldSize - 1 });
        outputs.forEach((bytes, rank) => {
          expect(fromBytes(bytes, "f32"), `n = ${n}, rank ${rank}`).toEqual(
            closedForm(algorithm.kind, placeOf(rank, worldSize, n, worldSize - 1), inputs),
          );
        });
        expect(after, "operands are left as they were").toEqual(inputs);
      }
    });

    test.each([2, 3, 4, 7])("10007 elements on %i ranks, in place where the request may be", async (worldSize) => {
      const inPlace = algorithm.kind === "all-reduce" || algorithm.kind === "broadcast";
      const { inputs, outputs } = await runWorld(algorithm, { worldSize, n: 10_007, sharesMemory, inPlace });
      outputs.forEach((bytes, rank) =>
        expect(fromBytes(bytes, "f32")).toEqual(closedForm(algorithm.kind, placeOf(rank, worldSize, 10_007), inputs)),
      );
    });

    test.each(["f32", "f16", "bf16", "i32", "u32", "u8", "bool"] as const)("%s, every reduction", async (dtype) => {
      if (reduces(algorithm) && !reducible.has(dtype)) return;
      for (const reduction of reduces(algorithm) ? (["sum", "max", "min"] as const) : (["sum"] as const)) {
        for (const worldSize of [2, 5]) {
          const { inputs, outputs } = await runWorld(algorithm, { worldSize, n: 13, dtype, reduction, sharesMemory });
          outputs.forEach((bytes, rank) =>
            expect(fromBytes(bytes, dtype)).toEqual(closedForm(algorithm.kind, placeOf(rank, worldSize, 13), inputs, reduction)),
          );
        }
      }
    });
  });

  test("same bits on every rank and on both kinds of transport, for values whose sum depends on the order", async () => {
    if (algorithm.kind !== "all-reduce") return;
    const values = (rank: number, count: number): number[] =>
      Array.from({ length: count }, (_, i) => Math.sin(i * 3 + rank * 17) * 10 ** ((i + rank * 3) % 7));
    for (const worldSize of [3, 5, 8]) {
      const lent = await runWorld(algorithm, { worldSize, n: 41, values, sharesMemory: true, inPlace: true });
      const copied = await runWorld(algorithm, { worldSize, n: 41, values });
      for (const bytes of [...lent.outputs, ...copied.outputs]) expect(bytes).toEqual(copied.outputs[0]);
    }
  });
});

test("direct-all-reduce sums in rank order, wherever chunks begin", async () => {
  const direct = algorithms.find((algorithm) => algorithm.name === "direct-all-reduce")!;
  const values = (rank: number, count: number): number[] => Array.from({ length: count }, () => Math.fround([1e8, 1, -1e8, 1][rank]!));
  for (const n of [4, 5, 11]) {
    const { outputs } = await runWorld(direct, { worldSize: 4, n, values, sharesMemory: true, inPlace: true });
    for (const bytes of outputs) expect(fromBytes(bytes, "f32")).toEqual(Array.from({ length: n }, () => 1)); // ((1e8 + 1) − 1e8) + 1 in f32
  }
});

test("ranks that start different requests are told so", async () => {
  const [a, b] = memoryWorld(2);
  const { schedule } = algorithms.find((algorithm) => algorithm.name === "ring-all-reduce")!;
  const run = (transport: typeof a, n: number): Promise<void> => {
    const bytes = new Uint8Array(n * 4);
    return execute(
      schedule(placeOf(transport!.rank, 2, n)),
      { input: bytes, output: bytes, dtype: "f32", tag: 1 },
      transport!,
      plainArithmetic(),
    );
  };
  const results = await Promise.allSettled([run(a, 8), run(b, 12)]);
  expect(results.map((result) => (result.status === "rejected" ? (result.reason as { code: string }).code : "fulfilled"))).toContain(
    "ranks-disagree",
  );
});
