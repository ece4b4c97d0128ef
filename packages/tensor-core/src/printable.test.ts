import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { ArgumentError, type DeviceArray, NdArray, referenceBackend, type Tensor, trace } from "./index.ts";

const tensor = ((): Tensor => {
  let own: Tensor | undefined;
  trace((x: Tensor) => (own = x), [{ dtype: "f32", shape: [2, 3] }]);
  return own!;
})();
const array = NdArray.from([0.1, -2.5, 1e-8, NaN, 5, 6, 7, 8], [2, 4]);
const device: DeviceArray = referenceBackend().upload(array);

test.each<[shown: string, value: unknown]>([
  ["Tensor f32[2, 3]", tensor],
  ["NdArray f32[2, 4] (0.1, -2.5, 1e-8, NaN, 5, 6, … 2 more)", array],
  ["NdArray f16[2] (1, 0.5)", NdArray.from([1, 0.5], [2], "f16")],
  ["NdArray f32[] (3)", NdArray.scalar(3)],
  ["NdArray i32[0, 4] ()", NdArray.zeros("i32", [0, 4])],
  ["DeviceArray f32[2, 4]", device],
])("console.log, a template and String() print %s", (shown, value) => {
  expect(inspect(value)).toBe(shown);
  expect(`${value}`).toBe(shown);
  expect(String(value)).toBe(shown);
  expect(inspect({ state: [{ value }] }, { depth: 10 })).toContain(shown);
});

test("JSON has dtype and shape, but not the trace", () => {
  expect(JSON.stringify({ tensor })).toBe('{"tensor":{"dtype":"f32","shape":[2,3]}}');
  expect(JSON.parse(JSON.stringify(NdArray.from([1, 2])))).toEqual({ dtype: "f32", shape: [2], values: [1, 2] });
  expect(JSON.stringify(device)).toBe('{"dtype":"f32","shape":[2,4]}');
});

describe("JavaScript operators throw with the functions to use instead", () => {
  // Cast to unknown, because TypeScript rejects most of these.
  test.each<[operator: string, fn: (x: never) => unknown]>([
    ["+", (x) => x + 1],
    ["*", (x) => (x as number) * 2],
    ["-", (x) => -x],
    ["==", (x) => x == 2], // oxlint-disable-line eqeqeq -- this operator is tested
    [">", (x) => x > 0],
    ["number", (x) => Number(x)],
    ["Math", (x) => Math.max(x, 0)],
  ])("%s", (_, fn) => {
    for (const [value, cure] of [
      [tensor, /add\(x, 1\).*where\(condition, a, b\)/],
      [array, /toNumbers\(\)/],
      [device, /backend\.download/],
    ] as const) {
      expect(() => fn(value as never)).toThrow(ArgumentError);
      expect(() => fn(value as never)).toThrow(cure);
    }
  });

  test("but a check for undefined and identity do not throw", () => {
    const [one, other]: readonly unknown[] = [tensor, device];
    // oxlint-disable-next-line eqeqeq -- this operator is tested
    expect([one == null, one == other, one == tensor]).toEqual([false, false, true]);
  });
});
