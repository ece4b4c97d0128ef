import { spread } from "@skein/testing";
import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import {
  type Backend,
  cos,
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
import { operators } from "@skein/tensor-core/backend";
import { beforeAll, describe, expect, test } from "vitest";

/** Returns the unit in the last place of f32 at `reference`. Below the normal range, the unit is constant. */
const unit = (reference: number): number => 2 ** (Math.max(-126, Math.floor(Math.log2(Math.abs(reference)))) - 23);

const errorInUnits = (actual: number, reference: number): number => {
  if (Object.is(actual, Math.fround(reference)) || actual === Math.fround(reference)) return 0;
  if (!Number.isFinite(actual) || !Number.isFinite(Math.fround(reference))) return Infinity;
  return Math.abs(actual - reference) / unit(reference === 0 ? 2 ** -126 : reference);
};

interface Bound {
  readonly op: string;
  readonly fn: (x: Tensor) => Tensor;
  readonly low: number;
  readonly high: number;
  /** Maximum error in units in the last place. */
  readonly units: number;
  readonly params?: { readonly approximate: boolean };
}

const bounds: readonly Bound[] = [
  { op: "exp", fn: exp, low: 1e-40, high: 88.7, units: 1.5 },
  { op: "log", fn: log, low: 1e-44, high: 3e38, units: 1.5 },
  { op: "sqrt", fn: sqrt, low: 1e-44, high: 3e38, units: 0.51 },
  { op: "rsqrt", fn: rsqrt, low: 1e-44, high: 3e38, units: 2 },
  { op: "tanh", fn: tanh, low: 1e-37, high: 100, units: 3 },
  { op: "sigmoid", fn: sigmoid, low: 1e-40, high: 120, units: 3 },
  { op: "erf", fn: erf, low: 1e-37, high: 10, units: 2 },
  { op: "sin", fn: sin, low: 1e-37, high: 1.5, units: 2 },
  { op: "cos", fn: cos, low: 1e-37, high: 1.5, units: 2 },
  { op: "softplus", fn: softplus, low: 1e-37, high: 80, units: 3 },
  { op: "silu", fn: silu, low: 1e-37, high: 80, units: 3 },
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

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

describe.each(builds)("elementary functions of the %s build", (build) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ build, memory: createSharedMemory(64 * 2 ** 20) });
  });

  test.each(bounds.map((bound) => [`${bound.op}${bound.params ? " by tanh" : ""}`, bound] as const))(
    "%s stays within its error bound in units in the last place",
    async (_, { op, fn, low, high, units, params }) => {
      const inputs = spread(low, high);
      const result = await evaluate(fn, backend)(new NdArray("f32", [inputs.length], inputs));
      let worst = 0;
      let at = 0;
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
    const angles = spread(1, 3.4e38);
    const [sines, cosines] = await evaluate(
      (x: Tensor) => [sin(x), cos(x)] as const,
      backend,
    )(new NdArray("f32", [angles.length], angles));
    angles.forEach((x, i) => {
      expect(Math.abs(sines.data[i]! - Math.sin(x)), `sin ${x}`).toBeLessThan(1e-7);
      expect(Math.abs(cosines.data[i]! - Math.cos(x)), `cos ${x}`).toBeLessThan(1e-7);
    });
  });

  test("power keeps f32 precision up to the ends of the range", async () => {
    const bases = spread(1e-3, 1e3, 2000).subarray(0, 2000);
    const exponents = Float32Array.from(bases, (_, i) => ((i * 37) % 257) / 10 - 12.8);
    const result = await evaluate(power, backend)(
      new NdArray("f32", [2000], bases),
      new NdArray("f32", [2000], exponents),
    );
    bases.forEach((a, i) =>
      expect(errorInUnits(result.data[i]!, a ** exponents[i]!), `${a} ** ${exponents[i]}`).toBeLessThanOrEqual(0.51),
    );
  });
});
