import { cast, evaluate, type HalfDType, multiply, NdArray, type Tensor } from "@skein/tensor-core";
import { fromBf16Bits, fromF16Bits, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCpuBackend } from "../src/cpu-backend.ts";

const floatOf = (bits: number): number => new Float32Array(Uint32Array.of(bits).buffer)[0]!;

const any = fc.integer({ min: 0, max: 0xffffffff });

/**
 * Returns bits of an f32 at the midpoint between two adjacent 16-bit values, or next to the midpoint, with either sign.
 */
const nearMiddle = (kept: number): fc.Arbitrary<number> =>
  fc
    .tuple(any, fc.constantFrom(-1, 0, 1))
    .map(([bits, beside]) => (((bits >>> kept) << kept) >>> 0) + 2 ** (kept - 1) + beside);

/** Bits of f32: ties, subnormals of f32 and of f16, the ends of both ranges, zeros, infinities, NaNs. */
const bits: fc.Arbitrary<number> = fc.oneof(
  any,
  nearMiddle(16),
  nearMiddle(13),
  fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 0x00ffffff })).map(([minus, low]) => (minus ? 0x80000000 : 0) + low),
  fc.tuple(any, fc.integer({ min: 101, max: 113 })).map(([low, e]) => ((low & 0x807fffff) | (e << 23)) >>> 0),
  fc.constantFrom(0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7f7f7fff, 0x7f7f8000),
  fc.constantFrom(0x7f7fffff, 0x477fefff, 0x477ff000, 0x387fffff, 0x33000000, 0x33000001),
);

const codes = {
  f16: { encode: toF16Bits, decode: fromF16Bits },
  bf16: { encode: toBf16Bits, decode: fromBf16Bits },
} satisfies Record<HalfDType, unknown>;

describe.each(["relaxed", "simd", "scalar"] as const)("casts to 16 bits in the %s build", (build) => {
  test.each(["f16", "bf16"] as const)(
    "round to the nearest %s, ties to even, stored or within a loop",
    async (dtype) => {
      const backend = await createCpuBackend({ build });
      const { encode, decode } = codes[dtype];
      await fc.assert(
        fc.asyncProperty(fc.array(bits, { minLength: 1, maxLength: 70 }), async (list) => {
          const values = list.map(floatOf);
          const x = new NdArray("f32", [values.length], Float32Array.from(values));
          const stored = await evaluate((one: Tensor) => cast(one, dtype), backend)(x);
          // The multiplication prevents the graph from consisting only of casts.
          const within = await evaluate((one: Tensor) => multiply(cast(cast(one, dtype), "f32"), 1.5), backend)(x);
          for (const [i, value] of values.entries()) {
            const expected = decode(encode(value));
            const bitsOf = stored.data[i]!;
            if (Number.isNaN(value)) expect(Number.isNaN(decode(bitsOf))).toBe(true);
            else expect(bitsOf, `${value}`).toBe(encode(value));
            expect(Object.is(within.data[i]!, Math.fround(1.5 * expected)), `${value}: ${within.data[i]}`).toBe(true);
          }
        }),
        { numRuns: 60 },
      );
    },
  );
});
