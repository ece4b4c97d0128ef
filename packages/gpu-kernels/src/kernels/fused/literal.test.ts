import { describe, expect, test } from "vitest";
import { literal } from "./literal.ts";

describe("a number in a shader", () => {
  test("is a decimal if a decimal is exact", () => {
    expect([0, 2, -0.5, 1e-30, 0.1].map((value) => literal(value, "f32"))).toEqual([
      "vec4<f32>(0.0)",
      "vec4<f32>(2.0)",
      "vec4<f32>(-0.5)",
      "vec4<f32>(1.0000000031710769e-30)",
      "vec4<f32>(0.10000000149011612)",
    ]);
    expect(literal(-(2 ** 31), "i32")).toBe("vec4<i32>(i32(-2147483647) - 1)");
    expect(literal(2 ** 32 - 1, "u32")).toBe("vec4<u32>(4294967295u)");
    expect(literal(1, "bool")).toBe("vec4<bool>(true)");
  });

  test("is bits that compilers cannot know if WGSL forbids the constant", () => {
    for (const [value, bits] of [
      [NaN, "7fc00000"],
      [Infinity, "7f800000"],
      [-Infinity, "ff800000"],
      [-0, "80000000"],
      [1e-40, "116c2"],
      [1e39, "7f800000"],
    ] as const)
      expect(literal(value, "f32")).toBe(`vec4<f32>(bitcast<f32>(0x${bits}u | sizes.never))`);
  });
});
