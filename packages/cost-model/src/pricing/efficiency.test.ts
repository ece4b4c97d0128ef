import fc from "fast-check";
import { expect, test } from "vitest";
import { madeUpDevice } from "../../test/made-up-device.ts";
import type { ComputeDevice, MeasuredEfficiency } from "../hardware/hardware.ts";
import { efficiencyLookup } from "./efficiency.ts";

const deviceWith = (efficiencies: readonly MeasuredEfficiency[]): ComputeDevice => madeUpDevice({ efficiencies });
const measured = (flops: number, bytes: number, efficiency: number, operator = "matmul"): MeasuredEfficiency => ({
  operator,
  flops,
  bytes,
  efficiency,
  samples: 1,
});

test("a measured size is used alone, sizes in between are interpolated, and sizes far away are assumed", () => {
  const lookUp = efficiencyLookup(deviceWith([measured(2 ** 20, 2 ** 10, 0.2), measured(2 ** 24, 2 ** 12, 0.8)]));
  expect(lookUp("matmul", { flops: 1.2 * 2 ** 20, bytes: 2 ** 10 })).toEqual({ value: 0.2, basis: "measured" });
  const between = lookUp("matmul", { flops: 2 ** 22, bytes: 2 ** 11 });
  expect(between.basis).toBe("interpolated");
  expect(between.value).toBeCloseTo(0.4, 12); // equally far from both measured sizes: the geometric mean
  expect(lookUp("matmul", { flops: 2 ** 32, bytes: 2 ** 20 })).toEqual({ value: 0.5, basis: "assumed" });
  expect(lookUp("conv2d", { flops: 2 ** 20, bytes: 2 ** 10 })).toEqual({ value: 0.5, basis: "assumed" });
});

test("kernels without flops are looked up by their bytes", () => {
  const lookUp = efficiencyLookup(deviceWith([measured(0, 4096, 0.3, "pad")]));
  expect(lookUp("pad", { flops: 0, bytes: 4096 })).toEqual({ value: 0.3, basis: "measured" });
});

test("an efficiency never leaves the range of the measured ones", () => {
  const size = fc.integer({ min: 10, max: 14 }).map((log) => 2 ** log);
  const row = fc.record({ flops: size, bytes: size, efficiency: fc.double({ min: 0.01, max: 3, noNaN: true }) });
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 8 }), size, size, (rows, flops, bytes) => {
      const lookUp = efficiencyLookup(deviceWith(rows.map((one) => measured(one.flops, one.bytes, one.efficiency))));
      const { value, basis } = lookUp("matmul", { flops, bytes });
      if (basis === "assumed") return value === 0.5;
      const values = rows.map(({ efficiency }) => efficiency);
      return value >= Math.min(...values) * (1 - 1e-12) && value <= Math.max(...values) * (1 + 1e-12);
    }),
  );
});
