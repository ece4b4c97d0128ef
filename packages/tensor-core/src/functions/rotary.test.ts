import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import type { Shape } from "../shape.ts";
import { add, arange, multiply } from "./elementwise.ts";
import { slice } from "./movement.ts";
import { sum } from "./reduce.ts";
import { rotary } from "./rotary.ts";

const reference = referenceBackend();
const wave = (shape: Shape, seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => Math.sin((i + 1) * seed)),
    shape,
  );
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, reference)(...inputs)) as NdArray).toNumbers();

describe("rotary", () => {
  test("keeps lengths, and products depend on the distance of positions only", async () => {
    const [x, y] = [wave([1, 8], 1.1), wave([1, 8], 0.3)];
    const product = (first: number, second: number): Promise<number[]> =>
      run(
        (x, y) => sum(multiply(rotary(x!, { base: 100, offset: first }), rotary(y!, { base: 100, offset: second }))),
        x,
        y,
      );
    expect((await product(9, 4))[0]).toBeCloseTo((await product(5, 0))[0]!, 5);
    expect((await product(9, 4))[0]).not.toBeCloseTo((await product(9, 3))[0]!, 3);
    const squares = (values: readonly number[]): number => values.reduce((total, value) => total + value ** 2, 0);
    expect(squares(await run((x) => rotary(x!, { base: 100, offset: 3 }), x))).toBeCloseTo(squares(x.toNumbers()), 5);
  });

  test("position t with offset o is position t + o", async () => {
    const x = wave([5, 4], 1.7);
    const whole = await run((x) => rotary(x!), x);
    const tail = await run((x) => rotary(slice(x!, [2]), { offset: 2 }), x);
    tail.forEach((value, i) => expect(value).toBeCloseTo(whole[8 + i]!, 6));
  });

  test("rejects an odd width", async () => {
    await expect(run((x) => rotary(x!), wave([2, 3], 1))).rejects.toThrow(
      /got f32\[2, 3\], expected f32 \[\.\.\., positions, D\] with D even/,
    );
  });

  test("turns each pair by its position times its frequency, exactly at any position", async () => {
    const position = fc.oneof(
      fc.integer({ min: -2_000_000, max: 2_000_000 }),
      fc.constantFrom(0, 2 ** 31 - 1, -(2 ** 31)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(position, { minLength: 1, maxLength: 5 }), fc.boolean(), async (at, interleaved) => {
        const x = wave([at.length, 6], 1.7);
        const pairs = interleaved ? "interleaved" : "halves";
        const turned = await run(
          (x, p) => rotary(x!, { positions: p!, pairs }),
          x,
          NdArray.from(at, [at.length], "i32"),
        );
        const values = x.toNumbers();
        for (const [row, t] of at.entries()) {
          for (let i = 0; i < 3; i++) {
            const [first, second] = (interleaved ? [2 * i, 2 * i + 1] : [i, i + 3]).map(
              (column) => row * 6 + column,
            ) as [number, number];
            const angle = t * 10_000 ** (-i / 3);
            expect(turned[first]!).toBeCloseTo(values[first]! * Math.cos(angle) - values[second]! * Math.sin(angle), 5);
            expect(turned[second]!).toBeCloseTo(
              values[second]! * Math.cos(angle) + values[first]! * Math.sin(angle),
              5,
            );
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test("explicit positions equal the default ones", async () => {
    const x = wave([2, 5, 4], 1.7);
    const [counted, given] = [
      await run((x) => rotary(x!, { offset: 3 }), x),
      await run((x) => rotary(x!, { positions: add(arange(5), 3) }), x),
    ];
    given.forEach((value, i) => expect(value).toBeCloseTo(counted[i]!, 6));
  });

  test("llama3 scaling keeps high frequencies and scales low ones", async () => {
    const scaling = {
      type: "llama3",
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalPositions: 8192,
    } as const;
    const x = NdArray.from([1, 1, 1, 0, 0, 0], [1, 6]);
    const at = NdArray.from([100], [1], "i32");
    // The frequencies 1, 500000^(-1/3) and 500000^(-2/3) give 1304, 16.4 and 0.2 turns in 8192 positions.
    const turned = await run((x, p) => rotary(x!, { positions: p!, base: 500_000, scaling }), x, at);
    [100, 100 * 500_000 ** (-1 / 3), (100 / 8) * 500_000 ** (-2 / 3)].forEach((angle, i) => {
      expect(turned[i]!).toBeCloseTo(Math.cos(angle), 5);
      expect(turned[i + 3]!).toBeCloseTo(Math.sin(angle), 5);
    });
    // 2.5 turns is in the middle between both bounds, so both frequencies have weight one half.
    const [middle] = [NdArray.from([1, 0], [1, 2])];
    const between = { ...scaling, originalPositions: 5 * Math.PI };
    const half = await run((x, p) => rotary(x!, { positions: p!, scaling: between }), middle, at);
    expect(half[0]!).toBeCloseTo(Math.cos(100 * (0.5 + 0.5 / 8)), 5);
  });

  test("names positions and scalings that do not fit", async () => {
    const x = wave([2, 5, 4], 1);
    const at = NdArray.zeros("i32", [3]);
    await expect(run((x, p) => rotary(x!, { positions: p! }), x, at)).rejects.toThrow(
      /positions are i32\[3\], which do not broadcast to the rows of f32\[2, 5, 4\]/,
    );
    await expect(run((x) => rotary(x!, { positions: x! }), x)).rejects.toThrow(/positions are f32\[2, 5, 4\]/);
    await expect(run((x, p) => rotary(x!, { positions: p!, offset: 2 }), x, NdArray.zeros("i32", [5]))).rejects.toThrow(
      /both positions and an offset of 2 were given; add the offset/,
    );
    await expect(run((x) => rotary(x!, { scaling: { type: "yarn", factor: 2 } as never }), x)).rejects.toThrow(
      /unknown scaling type "yarn"/,
    );
    await expect(run((x) => rotary(x!, { scaling: { type: "linear", factor: 0.5 } }), x)).rejects.toThrow(
      /scaling\.factor is the number 0\.5, but it must be a finite number from 1/,
    );
    await expect(run((x) => rotary(x!, { pairs: "both" as never }), x)).rejects.toThrow(/unknown pairs "both"/);
  });
});
