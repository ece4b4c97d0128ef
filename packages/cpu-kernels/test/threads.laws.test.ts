import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createCpuBackend } from "@skein/cpu-kernels";
import {
  add,
  attention,
  type Backend,
  batchNorm,
  constant,
  conv2d,
  evaluate,
  groupedMatmul,
  layerNorm,
  matmul,
  maxPool2d,
  multiply,
  type NdArray,
  relu,
  reshape,
  rmsNorm,
  softmax,
  sum,
  type Tensor,
  transpose,
  vjp,
} from "@skein/tensor-core";
import { conformanceCases, examples, normalArray } from "@skein/testing";
import { digestOf } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Arena, createSharedMemory } from "../src/arena.ts";
import type { Blas } from "../src/blas.ts";
import { withBlas } from "../src/blas/with-blas.ts";
import { backendOf } from "../src/cpu-backend.ts";
import { kernels } from "../src/kernel-table.ts";
import { soloTeam, type Team, TeamFunctions } from "../src/team/team.ts";
import { compileWasm, instantiateWasm } from "../src/wasm-build.ts";
import { plainBlas } from "./plain-blas.ts";
import { shuffledTeam } from "./shuffled-team.ts";

const module = await compileWasm("relaxed");

/** Creates a backend with the team `teamOf`, in which values share memory as in programs. */
const backendWith = (teamOf: (functions: TeamFunctions) => Team, blas?: Blas): Backend => {
  const memory = createSharedMemory(512 * 2 ** 20);
  const wasm = instantiateWasm(module, memory);
  const team = teamOf(new TeamFunctions(wasm, blas?.open(memory)));
  return backendOf({
    arena: new Arena(memory),
    wasm,
    kernels: blas === undefined ? kernels : withBlas(kernels, blas),
    team,
  });
};

type Fn = (...inputs: Tensor[]) => Tensor | readonly Tensor[];

const bitsOf = async (fn: Fn, inputs: readonly NdArray[], backend: Backend): Promise<string[]> => {
  const results = await evaluate((...xs: Tensor[]) => [fn(...xs)].flat(), backend)(...inputs);
  return results.map((result) => digestOf([...result.bytes()].join()));
};

/**
 * Returns a function that computes the result of `fn` and the gradients of its operands, with the result as the
 * cotangent.
 */
const withGradients =
  (fn: (...inputs: Tensor[]) => Tensor): Fn =>
  (...inputs) => {
    const { value, pullback } = vjp((xs: readonly Tensor[]) => fn(...xs), inputs);
    return [value, ...pullback(value)];
  };

/**
 * Returns a check that kernels split into parts, of which the last part runs first, give results that are bitwise
 * identical to those of unsplit kernels.
 */
const sameBits = (blas?: Blas): ((fn: Fn, inputs: readonly NdArray[]) => Promise<void>) => {
  const solo = backendWith(soloTeam, blas);
  const teams = [2, 3].map((threads) => backendWith((functions) => shuffledTeam(threads, functions), blas));
  return async (fn, inputs) => {
    const expected = await bitsOf(fn, inputs, solo);
    for (const team of teams) expect(await bitsOf(fn, inputs, team)).toEqual(expected);
  };
};

describe("parts have the bits of the undivided kernel", () => {
  const expectSameBits = sameBits();

  // Number of rows of each operator so far. By default, every third row of each operator runs, starting with the first
  // row. All rows run before a release.
  const seen = new Map<string, number>();
  const isThird = conformanceCases.map(({ op }) => {
    const place = seen.get(op) ?? 0;
    seen.set(op, place + 1);
    return place % 3 === 0;
  });
  describe.each([true, false])("rows of the table that always run: %s", (always) => {
    const rows = conformanceCases.filter((_, i) => isThird[i] === always);
    const tags = always ? [] : ["full"];
    test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", { tags }, async (_name, row) => {
      await expectSameBits(row.fn, row.inputs);
    });
  });

  test("rows, columns and fused loops larger than every block", async () => {
    // 64 blocks of 64 rows form a group. A tile of a fused loop has about 1000 elements.
    const problem = fc.record({
      rows: fc.constantFrom(1, 5, 63, 64, 65, 200, 4200),
      width: fc.constantFrom(1, 10, 33, 70, 300),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ rows: wanted, width }) => {
        const rows = width === 300 ? Math.min(wanted, 200) : wanted;
        const x = normalArray([rows, width], 1);
        const [gain, shift] = [2, 3].map((seed) => normalArray([width], seed)) as [NdArray, NdArray];
        for (const fn of [
          (a: Tensor, b: Tensor, c: Tensor) => layerNorm(a, b, c),
          (a: Tensor, b: Tensor) => rmsNorm(a, b),
          (a: Tensor, b: Tensor, c: Tensor) => batchNorm(a, b, c).y,
          (a: Tensor, b: Tensor, c: Tensor) => softmax(relu(add(multiply(a, b), c))),
          (a: Tensor, b: Tensor) => add(sum(multiply(a, a), { dims: [0] }), b),
          (a: Tensor) => sum(multiply(a, a)),
          (a: Tensor) => sum(relu(a), { dims: [1] }),
          (a: Tensor) => multiply(transpose(a, [1, 0]), 2),
        ])
          await expectSameBits(withGradients(fn as (...inputs: Tensor[]) => Tensor), [x, gain, shift]);
      }),
      { numRuns: examples(8, 20) },
    );
  });
});

describe.each([
  ["in WebAssembly", undefined],
  ["with a BLAS", plainBlas()],
  ["with a BLAS whose products cannot be cut", { ...plainBlas(), sliceRows: undefined }],
])("%s, parts have the bits of the undivided kernel", (_, blas) => {
  const expectSameBits = sameBits(blas);
  test("products of every size", async () => {
    const size = fc.integer({ min: 1, max: 140 });
    const problem = fc.record({
      batch: fc.integer({ min: 1, max: 4 }),
      rows: size,
      columns: size,
      inner: fc.oneof(size, fc.integer({ min: 500, max: 1100 })), // more than one block of the sum
      transposeA: fc.boolean(),
      transposeB: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ batch, rows, columns, inner, transposeA, transposeB }) => {
        const a = normalArray([batch, ...(transposeA ? [inner, rows] : [rows, inner])], 1);
        const b = normalArray([batch, ...(transposeB ? [columns, inner] : [inner, columns])], 2);
        const both = transposeA && transposeB && blas !== undefined; // a BLAS has no TT product
        await expectSameBits(
          (x, y) => matmul(x!, y!, { transposeA, transposeB: transposeB && !both }),
          [a, both ? normalArray([batch, inner, columns], 2) : b],
        );
      }),
      { numRuns: examples(10, 25) },
    );
  });

  test("products of groups and their gradients: even, skewed and empty groups, rows after the last group", async () => {
    const problem = fc.record({
      inner: fc.integer({ min: 1, max: 140 }),
      columns: fc.integer({ min: 1, max: 140 }),
      counts: fc.array(fc.constantFrom(0, 1, 7, 64, 130, 300), { minLength: 1, maxLength: 7 }),
      behind: fc.constantFrom(0, 5),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ inner, columns, counts, behind }) => {
        const rows = counts.reduce<number>((sum, count) => sum + count, behind);
        await expectSameBits(
          withGradients((x: Tensor, w: Tensor) => groupedMatmul(x, w, constant(counts, "i32"))),
          [normalArray([rows, inner], 1), normalArray([counts.length, inner, columns], 2)],
        );
      }),
      { numRuns: examples(10, 25) },
    );
  });

  test("convolutions and their gradients", async () => {
    const manyPixels = { batch: 4, size: 14, channels: 96, outChannels: 3, groups: 1, kernel: 3 };
    const problem = fc.record({
      batch: fc.integer({ min: 1, max: 4 }),
      size: fc.integer({ min: 3, max: 14 }),
      channels: fc.constantFrom(1, 3, 8, 96),
      outChannels: fc.constantFrom(2, 9, 20, 32),
      groups: fc.constantFrom(1, 1, 2),
      kernel: fc.integer({ min: 1, max: 3 }), // 9 taps of 96 channels are two blocks of the sum
      stride: fc.integer({ min: 1, max: 3 }),
      padding: fc.integer({ min: 0, max: 3 }),
      dilation: fc.integer({ min: 1, max: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ batch, size, groups: wanted, kernel, padding: around, ...sizes }) => {
        const { channels, outChannels, stride, dilation } = sizes;
        const groups = channels % wanted === 0 && outChannels % wanted === 0 ? wanted : 1;
        const x = normalArray([batch, size, size, channels], 1);
        const w = normalArray([kernel, kernel, channels / groups, outChannels], 2);
        const edge = [around, Math.max(around, (kernel - 1) * dilation + 1 - size)] as const;
        const padding = [edge, edge] as const;
        await expectSameBits(
          withGradients((a, b) => conv2d(a!, b!, { padding, stride, dilation, groups })),
          [x, w],
        );
      }),
      {
        numRuns: examples(6, 15),
        examples: [
          // Convolutions with the column matrix: three blocks of pixels, which end inside an image.
          [{ ...manyPixels, stride: 1, padding: 1, dilation: 1 }],
          [{ ...manyPixels, stride: 1, padding: 3, dilation: 2 }],
        ],
      },
    );
  });

  test("attention and its gradients, also with heads that share keys", async () => {
    const problem = fc.record({
      batch: fc.integer({ min: 1, max: 3 }),
      keyHeads: fc.integer({ min: 1, max: 3 }),
      group: fc.integer({ min: 1, max: 2 }),
      queries: fc.integer({ min: 1, max: 80 }),
      keys: fc.integer({ min: 1, max: 80 }),
      width: fc.constantFrom(3, 8, 20),
      causal: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(problem, async ({ batch, keyHeads, group, queries, keys, width, causal }) => {
        const q = normalArray([batch, keyHeads * group, queries, width], 1);
        const [k, v] = [2, 3].map((seed) => normalArray([batch, keyHeads, keys, width], seed)) as [NdArray, NdArray];
        await expectSameBits(
          withGradients((a, b, c) => attention(a!, b!, c!, { causal })),
          [q, k, v],
        );
      }),
      { numRuns: examples(4, 10) },
    );
  });
});

describe("threads", () => {
  let [one, two, three]: Awaited<ReturnType<typeof createCpuBackend>>[] = [];
  beforeAll(async () => {
    [one, two, three] = await Promise.all([1, 2, 3].map((threads) => createCpuBackend({ threads })));
  });
  afterAll(async () => {
    await Promise.all([one, two, three].map((backend) => backend!.close()));
  });

  /** Function whose kernels are all large enough to be split. */
  const network = withGradients((x, w, v) => {
    const image = maxPool2d(relu(conv2d(x!, w!, { padding: "same" })), { window: 2 });
    return softmax(matmul(reshape(transpose(image, [0, 2, 1, 3]), [-1, 32]), v!));
  });
  const inputs = [normalArray([9, 28, 28, 3], 1), normalArray([3, 3, 3, 32], 2), normalArray([32, 50], 3)];

  test("results of a network and its gradients have the same bits with one, two and three threads", async () => {
    const expected = await bitsOf(network, inputs, one!);
    for (let i = 0; i < 20; i++)
      for (const backend of [two!, three!]) expect(await bitsOf(network, inputs, backend)).toEqual(expected);
  });

  test("two backends of a process compute at the same time on one memory", async () => {
    const memory = createSharedMemory();
    const pair = await Promise.all([2, 2].map((threads) => createCpuBackend({ threads, memory, module })));
    const expected = await bitsOf(network, inputs, one!);
    const found = await Promise.all(pair.map((backend) => bitsOf(network, inputs, backend)));
    expect(found).toEqual([expected, expected]);
    await Promise.all(pair.map((backend) => backend.close()));
  });

  test("a program that leaves its backend open exits", async () => {
    const program = `
      import { createCpuBackend } from "@skein/cpu-kernels";
      console.log((await createCpuBackend({ threads: 2 })).threads);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: import.meta.dirname,
      timeout: 30_000,
    });
    expect(stdout).toBe("2\n");
  });
});
