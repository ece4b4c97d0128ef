import {
  cast,
  cos,
  type DType,
  erf,
  evaluate,
  exp,
  gelu,
  log,
  NdArray,
  power,
  rsqrt,
  sigmoid,
  silu,
  sin,
  softplus,
  sqrt,
  tanh,
  type Tensor,
} from "@skein/tensor-core";
import { operators, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";
import { seeded, spread } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { Binding, Pass } from "../../kernel.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { functionsFor } from "./functions.ts";

const smallest = 2 ** -126;

/** Returns the error in units in the last place. WGSL allows results below the normal range to become 0. */
const errorInUnits = (actual: number, reference: number): number => {
  const rounded = Math.fround(reference);
  if (actual === rounded || (Number.isNaN(actual) && Number.isNaN(rounded))) return 0;
  if (Math.abs(rounded) < smallest) return Math.abs(actual) <= smallest ? 0 : Infinity;
  if (!Number.isFinite(actual) || !Number.isFinite(rounded)) return Infinity;
  return Math.abs(actual - reference) / 2 ** (Math.max(-126, Math.floor(Math.log2(Math.abs(reference)))) - 23);
};

interface Bound {
  readonly op: string;
  readonly fn: (x: Tensor) => Tensor;
  readonly low: number;
  readonly high: number;
  /** Maximum error in units in the last place. WGSL allows an error of 2.5 units for a quotient inside a formula. */
  readonly units: number;
  readonly params?: { readonly approximate: boolean };
}

const bounds: readonly Bound[] = [
  { op: "exp", fn: exp, low: 1e-37, high: 88.7, units: 1.5 },
  { op: "log", fn: log, low: 1.2e-38, high: 3e38, units: 2 },
  { op: "sqrt", fn: sqrt, low: 1e-27, high: 3e38, units: 0.5001 },
  { op: "rsqrt", fn: rsqrt, low: 1.2e-38, high: 3e38, units: 3 },
  { op: "tanh", fn: tanh, low: 1e-37, high: 100, units: 4 },
  { op: "sigmoid", fn: sigmoid, low: 1e-37, high: 120, units: 4 },
  { op: "erf", fn: erf, low: 1e-37, high: 10, units: 2 },
  { op: "sin", fn: sin, low: 1e-37, high: 1.5, units: 2 },
  { op: "cos", fn: cos, low: 1e-37, high: 1.5, units: 2 },
  { op: "softplus", fn: softplus, low: 1e-37, high: 80, units: 3 },
  { op: "silu", fn: silu, low: 1e-37, high: 80, units: 4 },
  { op: "gelu", fn: gelu, low: 1e-36, high: 5, units: 40 },
  {
    op: "gelu",
    fn: (x) => gelu(x, { approximate: "tanh" }),
    low: 1e-36,
    high: 3,
    units: 12,
    params: { approximate: true },
  },
];

describe.skipIf(!hasAdapter)("elementary functions on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(bounds.map((bound) => [`${bound.op}${bound.params ? " by tanh" : ""}`, bound] as const))(
    "%s stays within its error bound in units in the last place",
    async (_, { op, fn, low, high, units, params }) => {
      const inputs = spread(low, high);
      const result = await evaluate(fn, backend)(new NdArray("f32", [inputs.length], inputs));
      let [worst, at] = [0, 0];
      inputs.forEach((x, i) => {
        const error = errorInUnits(
          result.data[i]!,
          operators[op]!.scalar!([x], params ?? { approximate: false }, "f32"),
        );
        if (error > worst) [worst, at] = [error, x];
      });
      expect(worst, `worst at ${at}`).toBeLessThanOrEqual(units);
    },
  );

  test("sine and cosine reduce any angle", async () => {
    const angles = Float32Array.of(...spread(1, 3.4e38), ...spread(8100, 8300, 2000));
    const [sines, cosines] = await evaluate(
      (x: Tensor) => [sin(x), cos(x)] as const,
      backend,
    )(new NdArray("f32", [angles.length], angles));
    const difference = (actual: ArrayLike<number>, of: (x: number) => number): number =>
      angles.reduce((most, x, i) => Math.max(most, Math.abs(actual[i]! - of(x))), 0);
    expect(difference(sines.data, Math.sin)).toBeLessThan(1e-7);
    expect(difference(cosines.data, Math.cos)).toBeLessThan(1e-7);
  });

  test("power keeps f32 precision up to the ends of the range", async () => {
    const random = seeded(5);
    const bases = Float32Array.from({ length: 40_000 }, (_, i) =>
      i % 2 === 0 ? 0.7 + 0.75 * random() : 2 ** (random() * 250 - 125),
    );
    // Exponents for which the logarithms of the results are between -87 and 88.
    const exponents = bases.map((a) => (random() * 175 - 87) / Math.log(a));
    const result = await evaluate(power, backend)(
      new NdArray("f32", [bases.length], bases),
      new NdArray("f32", [bases.length], exponents),
    );
    let [worst, at] = [0, ""];
    bases.forEach((a, i) => {
      const error = errorInUnits(result.data[i]!, a ** exponents[i]!);
      if (error > worst) [worst, at] = [error, `${a} ** ${exponents[i]}`];
    });
    expect(worst, `worst at ${at}`).toBeLessThanOrEqual(2);
  });

  // If the builtins of an adapter are exact, the correction is never needed, so the test first changes their results by
  // a few units.
  test.each([-3, -1, 0, 2, 3])("quotients and roots that are off by %i units are rounded correctly", async (units) => {
    const count = 160 * 256;
    const random = seeded(11);
    const wide = (): number =>
      Math.fround((random() < 0.5 ? -1 : 1) * (1 + random()) * 2 ** Math.floor(random() * 120 - 60));
    const [a, b] = [Float32Array.from({ length: count }, wide), Float32Array.from({ length: count }, wide)];
    const spec = { dtype: "f32", shape: [count] } as const;
    const code = `${functionsFor("round_quotient(round_root(")}
fn off(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bitcast<vec4<i32>>(x) + vec4<i32>(${units})); }
fn main(group: u32, lane: u32) {
  let at = group * 64u + lane;
  q[at] = round_quotient(a[at], b[at], off(a[at] / b[at]));
  r[at] = round_root(abs(a[at]), off(sqrt(abs(a[at]))));
}`;
    const sources = [{ input: 0 }, { input: 1 }, { output: 0 }, { output: 1 }];
    const bindings = ["a", "b", "q", "r"].map(
      (name, i): Binding => ({ name, type: "array<vec4<f32>>", source: sources[i]!, access: i < 2 ? "read" : "write" }),
    );
    const pass: Pass = {
      label: "rounding",
      bindings,
      workgroupSize: 64,
      groups: count / 256,
      code,
      sizes: { never: 0 },
    };
    const operands = [new NdArray("f32", [count], a), new NdArray("f32", [count], b)];
    const [q, r] = (await runPlan(backend.device, { passes: [pass] }, operands, [spec, spec])).map(
      (bytes) => new Float32Array(bytes),
    );
    expect(q!.findIndex((value, i) => value !== Math.fround(a[i]! / b[i]!))).toBe(-1);
    expect(r!.findIndex((value, i) => value !== Math.fround(Math.sqrt(Math.abs(a[i]!))))).toBe(-1);
  });

  test.each(["f16", "bf16"] as DType[])("casts to %s round every value like the host", async (dtype) => {
    const encode = dtype === "f16" ? toF16Bits : toBf16Bits;
    const random = seeded(7);
    const halves = Float32Array.from({ length: 20_000 }, () => {
      // Half of the values are close to the midpoint between two adjacent 16-bit values.
      const bits = Math.floor(random() * 2 ** 32);
      const middle = dtype === "f16" ? (bits & ~0x1fff) | 0x1000 : (bits & ~0xffff) | 0x8000;
      return new Float32Array(Int32Array.of(random() < 0.5 ? bits : middle + Math.floor(random() * 3) - 1).buffer)[0]!;
    }).filter((x) => !Number.isNaN(x) && (Math.abs(x) >= smallest || x === 0));
    const result = await evaluate((x: Tensor) => cast(x, dtype), backend)(new NdArray("f32", [halves.length], halves));
    const wrong = [...halves].findIndex((x, i) => result.data[i] !== encode(x));
    expect(wrong === -1 ? "none" : `${halves[wrong]} became ${result.data[wrong]}, not ${encode(halves[wrong]!)}`).toBe(
      "none",
    );
  });
});
