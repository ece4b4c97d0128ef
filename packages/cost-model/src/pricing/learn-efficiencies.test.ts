import fc from "fast-check";
import { expect, test } from "vitest";
import { madeUpDevice } from "../../test/made-up-device.ts";
import { kernelPricer } from "./kernel-price.ts";
import { type KernelSample, learnEfficiencies } from "./learn-efficiencies.ts";

const device = madeUpDevice({
  flopsPerSecond: { f32: 4e10, f16: 8e10 },
  memoryBytesPerSecond: 2e10,
  kernelStartSeconds: 2e-6,
});
const sample = (operator: string, flops: number, bytes: number, seconds: number): KernelSample => ({
  operator,
  flops,
  bytes,
  seconds,
});

test("learned efficiencies reproduce the samples: exactly if each size was measured once", () => {
  const amount = fc.integer({ min: 8, max: 30 }).map((log) => 2 ** log);
  const row = fc.record({
    operator: fc.constantFrom("matmul", "fused"),
    flops: amount,
    bytes: amount,
    working: fc.double({ min: 1e-6, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(row, {
        selector: ({ operator, flops, bytes }) => `${operator} ${flops} ${bytes}`,
        minLength: 1,
        maxLength: 6,
      }),
      (rows) => {
        const samples = rows.map(({ operator, flops, bytes, working }) =>
          sample(operator, flops, bytes, working + device.kernelStartSeconds),
        );
        const price = kernelPricer({ ...device, efficiencies: learnEfficiencies(device, samples) });
        for (const { operator, flops, bytes, seconds } of samples) {
          const priced = price(operator, { flops, bytes });
          expect(priced.basis).toBe("measured");
          expect(Math.abs(priced.seconds / seconds - 1)).toBeLessThan(1e-9);
        }
      },
    ),
  );
});

test("samples of one size become one row, with the confidence interval of their mean", () => {
  const rows = learnEfficiencies(device, [
    sample("matmul", 2 ** 30, 2 ** 20, 0.1),
    sample("matmul", 2 ** 30, 2 ** 20, 0.4),
    sample("fused", 0, 4096, 1e-5),
  ]);
  expect(rows.map(({ operator, samples }) => [operator, samples])).toEqual([
    ["matmul", 2],
    ["fused", 1],
  ]);
  const roof = 2 ** 30 / 4e10;
  expect(rows[0]!.efficiency).toBeCloseTo(roof / 0.2, 4); // geometric mean of 0.1 and 0.4 s
  expect(rows[0]!.relativeError).toBeCloseTo(1.96 * Math.log(2), 3);
  expect(rows[1]).not.toHaveProperty("relativeError");
});

test("a kernel no longer than its start does not make a device infinitely fast", () => {
  const [row] = learnEfficiencies(device, [sample("fused", 100, 4096, 1e-6)]);
  expect(row!.efficiency).toBeCloseTo(4096 / 2e10 / 1e-7, 6);
});

test("operands of another type have another roof, and operators without work have no row", () => {
  const half = { ...sample("matmul", 2 ** 30, 1, 0.1), type: "f16" as const };
  expect(learnEfficiencies(device, [half])[0]!.efficiency).toBeCloseTo(2 ** 30 / 8e10 / (0.1 - 2e-6), 9);
  expect(learnEfficiencies(device, [sample("identity", 0, 0, 1e-6)])).toEqual([]);
});

test.each([0, -1, Number.NaN, Infinity])("rejects a time of %d s", (seconds) => {
  expect(() => learnEfficiencies(device, [sample("matmul", 1, 1, seconds)])).toThrow(
    /a sample of matmul has .* measure the kernel again/,
  );
});
