import { createCpuBackend } from "@skein/cpu-kernels";
import { createWebGpuBackend } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import { type Backend, NdArray } from "@skein/tensor-core";
import type { ReferenceArray } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bucket, lengthOf } from "../src/index.ts";
import { expectSameState, expectSameStep, namesWithTolerance } from "./devices/closeness.ts";
import { compiledStep, type CompiledStep, firstState } from "./devices/compiled-step.ts";
import { sizedBuckets } from "./devices/sized-buckets.ts";
import { cycleOf } from "./laws/law.ts";
import type { Row } from "./rows/row.ts";
import { type Stepped, type Stepper, stepperOf } from "./stepper.ts";
import { rows } from "./table.ts";

// One instance per process, because collecting an instance too early aborts the process.
const gpu = await openNodeGpu().catch(() => undefined);
const hasAdapter = Boolean(await gpu?.requestAdapter().catch(() => null));

/** One step of a row on one rank: its inputs, and the result of the reference backend. */
interface Case {
  readonly stepper: Stepper;
  readonly gradient: NdArray;
  readonly state: readonly ReferenceArray[];
  readonly number: number;
  readonly expected: Stepped;
}

/** Consecutive steps on one bucket. */
interface Walk {
  readonly bucket: Bucket;
  readonly steppers: readonly Stepper[];
  readonly cases: readonly Case[];
}

const seed = 5;

/**
 * Returns two steps of a row. Each step starts from the state of the reference backend, so that inputs do not depend on
 * the tested backend.
 */
const walkOf = (row: Row, bucket: Bucket, gradients: readonly NdArray[]): Walk => {
  const steppers = cycleOf(row).map((aggregator) =>
    stepperOf(aggregator, bucket, 1, { axes: row.axes?.(1), keyed: row.randomised }),
  );
  let [state] = steppers[0]!.init();
  const cases = gradients.map((gradient, number): Case => {
    const stepper = steppers[number % steppers.length]!;
    const expected = stepper.step([gradient.data as Float32Array], [state!], seed, number);
    const before = state!;
    state = expected.state[0] as ReferenceArray[];
    return { stepper, gradient, state: before, number, expected };
  });
  return { bucket, steppers, cases };
};

const vector = (n: number, value: (i: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: n }, (_, i) => value(i)),
    [n],
  );

/**
 * Returns the gradients of a row. For a row without state, all steps are equivalent. Therefore the longest bucket,
 * which is slow, gets only one gradient for such rows.
 */
const gradientsOf = (row: Row, bucket: Bucket): NdArray[] => {
  const gradients = [normalArray([lengthOf(bucket)], 7), normalArray([lengthOf(bucket)], 8)];
  return lengthOf(bucket) > 1000 &&
    stepperOf(row.aggregator, bucket, 1, { axes: row.axes?.(1), keyed: row.randomised }).paths.length === 0
    ? gradients.slice(1)
    : gradients;
};

const walksOf = (row: Row): Walk[] => [
  ...Object.values(sizedBuckets).map((bucket) => walkOf(row, bucket, gradientsOf(row, bucket))),
  // Only zeros; then only tied magnitudes, every third with the other sign.
  ...[sizedBuckets[33], sizedBuckets[1000]].flatMap((bucket) => [
    walkOf(row, bucket, [vector(lengthOf(bucket), () => 0), vector(lengthOf(bucket), (i) => (i % 3 === 0 ? -1 : 1))]),
  ]),
];

const toArrays = (leaves: readonly ReferenceArray[]): NdArray[] =>
  leaves.map(({ spec, data }) => NdArray.from(data, spec.shape, spec.dtype));

const withCompiled = async (
  steppers: readonly Stepper[],
  backend: Backend,
  use: (stepOf: (stepper: Stepper) => CompiledStep) => Promise<void>,
): Promise<void> => {
  const compiled = new Map(steppers.map((stepper) => [stepper, compiledStep(stepper, backend)]));
  await use((stepper) => compiled.get(stepper)!);
  for (const step of compiled.values()) step.release();
};

const checkWalk = async (row: Row, { bucket, steppers, cases }: Walk, backend: Backend): Promise<void> => {
  expectSameState(row, [await firstState(row.aggregator, bucket, backend)], [cases[0]!.state]);
  await withCompiled(steppers, backend, async (stepOf) => {
    for (const { stepper, gradient, state, number, expected } of cases) {
      const actual = await stepOf(stepper).run(gradient, toArrays(state), seed, number);
      try {
        expectSameStep(row, [actual], expected);
      } catch (error) {
        throw new Error(`step ${number} on ${lengthOf(bucket)} elements: ${(error as Error).message}`, {
          cause: error,
        });
      }
    }
  });
};

/** Checks a gradient with one non-finite element, in the first and in the second step. */
const checkPoison = async (row: Row, { bucket, steppers, cases }: Walk, backend: Backend): Promise<void> => {
  const n = lengthOf(bucket);
  await withCompiled(steppers, backend, async (stepOf) => {
    for (const { stepper, gradient, state, number } of cases) {
      for (const [place, value] of [
        [0, NaN],
        [n - 1, NaN],
        [n >> 1, Infinity],
        [n >> 1, -Infinity],
      ] as const) {
        const poisoned = gradient.toNumbers().with(place, value);
        const { mean } = await stepOf(stepper).run(NdArray.from(poisoned), toArrays(state), seed, number);
        if (mean.toNumbers().every(Number.isFinite))
          throw new Error(`step ${number}: element ${place} of ${n} is ${value}, but the mean is finite`);
      }
    }
  });
};

const webGpuLengths = [33, 70_001];

const tagsOf = (name: string, row: Row): { readonly tags: string[] } => ({
  tags: name === "WebGPU" && composed.test(row.name) ? ["full"] : [],
});

const backends: Partial<Record<"WebAssembly" | "WebGPU", Backend>> = {};
beforeAll(async () => {
  backends.WebAssembly = await createCpuBackend();
  if (!hasAdapter) return;
  const webGpu = await createWebGpuBackend({ gpu: gpu! });
  backends.WebGPU = webGpu;
  return () => webGpu.close();
});

/** Pattern of row names whose shaders are covered by other rows and are slow to compile. */
const composed = /with |chain|partition|per-path|stochastic|per tensor|of \d bits|in pieces/;

describe.each(rows)("one rank of $name equals the reference", (row) => {
  let walks: readonly Walk[] | undefined;
  afterAll(() => {
    walks = undefined;
  });

  for (const name of ["WebAssembly", "WebGPU"] as const)
    it.skipIf(name === "WebGPU" && !hasAdapter)(`on ${name}`, tagsOf(name, row), async () => {
      walks ??= walksOf(row);
      // Each length needs its own shaders, which take a driver seconds to compile for the first time.
      const own = name === "WebGPU" ? walks.filter(({ bucket }) => webGpuLengths.includes(lengthOf(bucket))) : walks;
      for (const walk of own) await checkWalk(row, walk, backends[name]!);
      for (const walk of own.filter(({ bucket }) => [1, 33, 1000].includes(lengthOf(bucket))))
        await checkPoison(row, walk, backends[name]!);
    });
});

it("every tolerance belongs to a row", () => {
  const names = new Set(rows.map(({ name }) => name));
  expect(namesWithTolerance.filter((name) => !names.has(name))).toEqual([]);
});
