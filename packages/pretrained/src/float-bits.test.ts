import { NdArray } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { fromF32, toF32 } from "./float-bits.ts";

const patterns = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);

test.each(["bf16", "f16"] as const)(
  "every bit pattern of %s except NaN survives conversion to f32 and back",
  (dtype) => {
    const halves = new NdArray(dtype, [2 ** 16], patterns);
    const wide = toF32(halves);
    expect(wide.toNumbers()).toEqual(halves.toNumbers());
    const back = fromF32(wide, dtype);
    expect(back.toNumbers()).toEqual(halves.toNumbers());
    const lost = patterns.filter((pattern) => !Number.isNaN(wide.data[pattern]!) && back.data[pattern] !== pattern);
    expect(lost).toEqual(new Uint16Array());
  },
);
