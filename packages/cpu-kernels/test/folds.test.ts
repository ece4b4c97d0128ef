import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import {
  absolute,
  add,
  type Backend,
  bitcast,
  cast,
  cumsum,
  evaluate,
  less,
  multiply,
  NdArray,
  packBits,
  reduceMax,
  reduceMin,
  reshape,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

interface Reduction {
  readonly prepare?: (y: Tensor) => Tensor;
  readonly reduce: (z: Tensor) => Tensor;
}

const along = { dims: -1 };
const asMask = (y: Tensor): Tensor => less(y, 0.25);
const sumOf = (z: Tensor): Tensor => bitcast(sum(z, along), "u32");
const greatestOf = (z: Tensor): Tensor => bitcast(reduceMax(z, along), "u32");
const minOf = (z: Tensor): Tensor => bitcast(reduceMin(z, along), "u32");

const reductions: { readonly [name: string]: Reduction } = {
  sum: { reduce: sumOf },
  "sum of all": { reduce: (z) => bitcast(sum(z), "u32") },
  "sum of magnitudes": { prepare: absolute, reduce: sumOf },
  "sum of all magnitudes": { prepare: absolute, reduce: (z) => bitcast(sum(z), "u32") },
  count: { prepare: (y) => cast(asMask(y), "f32"), reduce: sumOf },
  greatest: { reduce: greatestOf },
  least: { reduce: minOf },
  "greatest magnitude": { prepare: absolute, reduce: greatestOf },
  bits: { prepare: asMask, reduce: packBits },
  "bits of all": { prepare: asMask, reduce: (z) => packBits(reshape(z, [-1])) },
};
const wholeOf =
  ({ prepare = (y) => y, reduce }: Reduction): ((y: Tensor) => Tensor) =>
  (y) =>
    reduce(prepare(y));

/**
 * Functions that compute the operand of a reduction from x `[rows, size]`, a value per row, a value per column and
 * bools.
 */
const programs: { readonly [name: string]: (x: Tensor, row: Tensor, column: Tensor, mask: Tensor) => Tensor } = {
  "the operand itself": (x) => x,
  magnitudes: (x) => absolute(x),
  "with a value per row": (x, row) => add(multiply(x, row), 0.5),
  "with a value per column": (x, _, column) => multiply(x, column),
  "with bools": (x, row, _, mask) => add(multiply(cast(mask, "f32"), row), x),
};

const sizes = [
  2, 3, 7, 31, 32, 33, 96, 100, 255, 256, 300, 511, 512, 513, 1000, 1023, 1024, 1025, 1030, 1537, 2047, 2048, 3001,
  5000,
];

describe.each(builds)("reductions in a fused program, %s build", (build) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ build, memory: createSharedMemory(256 * 2 ** 20) });
  });

  const numbersOf = async (
    fn: (...inputs: Tensor[]) => readonly Tensor[],
    inputs: readonly NdArray[],
  ): Promise<number[][]> =>
    ((await evaluate(fn, backend)(...inputs)) as readonly NdArray[]).map((array) => array.toNumbers());

  test("have the bits of reductions that read the same values from memory", async () => {
    const names = <T>(table: { readonly [name: string]: T }): fc.Arbitrary<string> =>
      fc.constantFrom(...Object.keys(table));
    await fc.assert(
      fc.asyncProperty(
        names(programs),
        fc.uniqueArray(names(reductions), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...sizes),
        fc.constantFrom(1, 2, 5, 9, 23),
        fc.boolean(),
        async (program, wanted, size, rows, keep) => {
          const inputs = [
            normalArray([rows, size], size),
            normalArray([rows, 1], 2),
            normalArray([size], 3),
            normalArray([rows, size], 4, "bool"),
          ];
          const fn = programs[program]!;
          const [y] = (await evaluate(
            (...own: Tensor[]) => [fn(own[0]!, own[1]!, own[2]!, own[3]!)],
            backend,
          )(...inputs)) as [NdArray];
          const folded = await numbersOf((...own) => {
            const value = fn(own[0]!, own[1]!, own[2]!, own[3]!);
            return [...wanted.map((name) => wholeOf(reductions[name]!)(value)), ...(keep ? [value] : [])];
          }, inputs);
          for (const [i, name] of wanted.entries()) {
            const { prepare, reduce } = reductions[name]!;
            const z = prepare === undefined ? y : ((await evaluate(prepare, backend)(y)) as NdArray);
            const [alone] = await numbersOf((value) => [reduce(value!)], [z]);
            expect(folded[i], name).toEqual(alone);
          }
          if (keep) expect(folded.at(-1)).toEqual(y.toNumbers());
        },
      ),
      { numRuns: 150 },
    );
  });

  test.each([5, 1023, 1029, 3000])("propagate NaN and order zeros, in rows of %i", async (size) => {
    for (const at of [0, size >> 1, size - 1]) {
      const withOne = (rest: number, one: number): NdArray =>
        NdArray.from(
          Array.from({ length: size }, (_, i) => (i === at ? one : rest)),
          [1, size],
        );
      const ends = (x: Tensor): readonly Tensor[] => [
        greatestOf(x),
        minOf(x),
        greatestOf(absolute(x)),
        sumOf(x),
        sumOf(absolute(x)),
      ];
      const minusZero = 0x80000000;
      expect((await numbersOf((x) => ends(x!), [withOne(-0, 0)])).slice(0, 2)).toEqual([[0], [minusZero]]);
      expect((await numbersOf((x) => ends(x!), [withOne(0, -0)])).slice(0, 2)).toEqual([[0], [minusZero]]);
      const bits = await numbersOf((x) => ends(x!), [withOne(1, NaN)]);
      for (const [word] of bits) expect(word! & 0x7fffffff).toBeGreaterThan(0x7f800000);
    }
  });

  test("read operands before results overwrite them", async () => {
    const a = NdArray.from(Array.from({ length: 2050 }, (_, i) => (i % 5) - 2));
    const x = ((await evaluate(cumsum, backend)(a)) as NdArray).toNumbers();
    // Returns results of an intermediate that is not used elsewhere, so that the plan may place results over the
    // intermediate.
    const joined = (own: Tensor): readonly Tensor[] => {
      const magnitudes = absolute(cumsum(own));
      return [sum(magnitudes), cumsum(multiply(magnitudes, 3))];
    };
    const [[total]] = (await numbersOf((own) => joined(own!), [a])) as [[number]];
    expect(total).toBe(x.reduce((all, value) => all + Math.abs(value), 0));
    const shared = (own: Tensor): readonly Tensor[] => {
      const dying = cumsum(own);
      const above = add(dying, 1000);
      return [reduceMin(dying), sum(above), cumsum(above)];
    };
    const [[least], [all]] = (await numbersOf((own) => shared(own!), [a])) as [[number], [number]];
    expect([least, all]).toEqual([Math.min(...x), x.reduce((sumSoFar, value) => sumSoFar + value + 1000, 0)]);
  });
});
