import { NdArray, type TensorSpec } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { seeded } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { KernelPlan } from "../../kernel.ts";
import { minimalDevice } from "../../minimal-device.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { histogramPasses, maxLocalBins } from "./histogram.ts";

const planOf = (count: number, bins: number): KernelPlan => {
  const blocks = new ScratchBlocks();
  const passes = histogramPasses(count, bins, blocks, minimalDevice);
  return { scratch: blocks.bytes, passes };
};

describe("plans of histograms", () => {
  test("hold as many copies of each bin as fit in workgroup memory", () => {
    const labels = (bins: number): string => planOf(1000, bins).passes[1]!.label;
    expect([1, 128, 129, 2048, 2049, maxLocalBins, maxLocalBins + 1].map(labels)).toEqual([
      "histogram, 32 copies",
      "histogram, 32 copies",
      "histogram, 16 copies",
      "histogram, 2 copies",
      "histogram, 1 copies",
      "histogram, 1 copies",
      "histogram, no copies",
    ]);
    expect(4 * maxLocalBins).toBeLessThanOrEqual(minimalDevice.maxWorkgroupBytes);
  });
});

describe.skipIf(!hasAdapter)("histogram on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each([3, 1000, 65_536])(
    "divides %i bins of any width exactly: values next to edges fall into the bins of the reference",
    async (bins) => {
      const random = seeded(bins);
      const [words, floats] = [new Uint32Array(1), new Float32Array(1)];
      const asFloat = (bits: number): number => {
        words[0] = bits;
        return new Float32Array(words.buffer)[0]!;
      };
      const next = (value: number, step: number): number => {
        floats[0] = value;
        return asFloat(new Uint32Array(floats.buffer)[0]! + step);
      };
      const counts: TensorSpec = { dtype: "i32", shape: [bins] };
      for (let round = 0; round < 25; round++) {
        // Any exponent from 2^-110 to 2^110, any mantissa.
        const high = asFloat(((17 + Math.floor(random() * 220)) << 23) | Math.floor(random() * 2 ** 23));
        const low = round % 2 === 0 ? 0 : Math.fround(high * (random() - 1));
        const values = Array.from({ length: 200 }, () => {
          const edge = low + (Math.floor(random() * (bins + 1)) * (high - low)) / bins;
          return [-1, 0, 1].map((step) => next(edge, step));
        }).flat();
        const inputs = [NdArray.from(values), NdArray.scalar(low), NdArray.scalar(high)];
        const [actual] = await runPlan(backend.device, planOf(values.length, bins), inputs, [counts]);
        const operands = inputs.map((array) => ({ spec: array, data: Float64Array.from(array.toNumbers()) }));
        const [expected] = operators["histogram"]!.reference(operands, { bins }, [counts]);
        expect(new Int32Array(actual!), `round ${round}: ${low} to ${high}`).toEqual(Int32Array.from(expected!));
      }
    },
  );
});
