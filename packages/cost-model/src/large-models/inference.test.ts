import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hardwareNamed, shippedHardware } from "../hardware/shipped/index.ts";
import { architectures, modelNamed } from "./architectures.ts";
import { estimateInference, largestInferenceBatch } from "./inference.ts";
import {
  type InferenceConfiguration,
  inferenceMemory,
  inferencePlan,
  keyValueBytesPerToken,
} from "./inference-plan.ts";
import type { TransformerShape } from "./model-shape.ts";

const a800 = hardwareNamed("a800");
const llama = modelNamed("llama-2-7b") as TransformerShape;
const grouped = modelNamed("llama-2-70b") as TransformerShape;
const estimate = (given: Partial<InferenceConfiguration> = {}, shape = llama, hardware = a800) =>
  estimateInference(shape, { task: "inference", batch: 1, ...given }, hardware);

test("a token adds keys and values of all key/value heads to the cache, each rank its part", () => {
  const plan = { weights: "f16", tensorParallel: 1 } as const;
  // 2 · 32 · 4096 · 2 bytes; with 8 key/value heads for 64 query heads, 2 · 80 · 1024 · 2 bytes.
  expect(keyValueBytesPerToken(llama, plan)).toBe(524_288);
  expect(keyValueBytesPerToken(grouped, plan)).toBe(327_680);
  expect(keyValueBytesPerToken(grouped, { ...plan, weights: "f32" })).toBe(2 * 327_680);
  expect(keyValueBytesPerToken(grouped, { ...plan, tensorParallel: 8 })).toBe(327_680 / 8);
  // Sixteen ranks have one key/value head each, so each of the eight heads is stored twice.
  expect(keyValueBytesPerToken(grouped, { ...plan, tensorParallel: 16 })).toBe(327_680 / 8);
  const { keyValueCache } = estimate({ batch: 3, promptTokens: 100, outputTokens: 29 }).memory;
  expect(keyValueCache).toBe(3 * 128 * 524_288);
});

test("the size of weights follows from their storage type", () => {
  const bytes = (["f32", "f16", "i8", "i4"] as const).map((weights) => estimate({ weights }).memory.weights);
  expect(bytes[0]).toBe(4 * 6_738_415_616);
  expect(bytes[1]).toBe(2 * 6_738_415_616);
  // Quantized matrices of layers: 32 · (4 · 4096² + 3 · 4096 · 11008) values; all other weights stay f16.
  const matrices = 32 * (4 * 4096 ** 2 + 3 * 4096 * 11_008);
  expect(bytes[2]).toBe(2 * 6_738_415_616 - (2 - 1.0625) * matrices);
  expect(bytes[3]).toBe(2 * 6_738_415_616 - (2 - 0.5625) * matrices);
});

describe("time", () => {
  test("of a decoded token is the time to read weights and cache: memory-bound", () => {
    const { decode, memory } = estimate();
    expect(decode!.memoryBoundShare).toBeGreaterThan(0.95);
    // A decode pass reads all weights except the embedding, and the cache.
    const read = memory.weights - 2 * 32_000 * 4096;
    expect(decode!.bytes / read).toBeGreaterThan(1);
    expect(decode!.bytes / read).toBeLessThan(1.05);
    const least = read / (a800.device.memoryBytesPerSecond * a800.device.assumedEfficiency);
    expect(decode!.seconds / least).toBeLessThan(1.15);
  });

  test("of a prompt is compute-bound, and with a large batch so is decoding, except for the cache", () => {
    expect(estimate({ promptTokens: 2048 }).prefill.memoryBoundShare).toBeLessThan(0.15);
    const { rows } = estimate({ batch: 2048 });
    const gate = rows.find(({ name, pass }) => name === "gate" && pass === "decode")!;
    expect(gate.boundBy).toBe("flops");
    expect(rows.find(({ operator, pass }) => operator === "attention" && pass === "decode")!.boundBy).toBe("bytes");
  });

  test("decreases with narrower weights, and with ranks that share them; throughput increases with the batch", () => {
    const tokens = (["f32", "f16", "i8", "i4"] as const).map((weights) => estimate({ weights }).secondsPerOutputToken!);
    expect(tokens).toEqual(tokens.toSorted((a, b) => b - a));
    const shared = [1, 2, 4, 8].map((tensorParallel) =>
      estimate({ tensorParallel }, grouped, hardwareNamed("h100-sxm")),
    );
    const seconds = shared.map(({ secondsPerOutputToken }) => secondsPerOutputToken!);
    expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
    // Two all-reduces per layer, of one token's values.
    expect(shared[3]!.collectives.map(({ calls, bytes }) => [calls, bytes])).toEqual([
      [160, 160 * 512 * 8192 * 2],
      [160, 160 * 8192 * 2],
    ]);
    expect(shared[0]!.collectives).toEqual([]);
    const throughputs = [1, 2, 8, 64].map((batch) => estimate({ batch }).itemsPerSecond);
    expect(throughputs).toEqual(throughputs.toSorted((a, b) => a - b));
  });

  test("of a batch is that of its passes, and of a pass that of its operators and collectives", () => {
    const settings = fc.record({
      batch: fc.integer({ min: 1, max: 50 }),
      promptTokens: fc.integer({ min: 1, max: 500 }),
      outputTokens: fc.integer({ min: 1, max: 500 }),
      weights: fc.constantFrom("f32", "f16", "bf16", "i8", "i4"),
      flashAttention: fc.boolean(),
    } as const);
    const transformers = fc.constantFrom(...architectures.filter(({ kind }) => kind === "transformer"));
    fc.assert(
      fc.property(transformers, settings, fc.constantFrom(...shippedHardware), (shape, given, hardware) => {
        const of = estimateInference(shape, { task: "inference", ...given }, hardware);
        for (const pass of [of.prefill, of.decode]) {
          if (pass === undefined) continue;
          const rows = of.rows.filter((row) => row.pass === pass.pass).reduce((sum, { seconds }) => sum + seconds, 0);
          expect(Math.abs((rows + pass.communicationSeconds) / pass.seconds - 1)).toBeLessThan(1e-9);
        }
        expect(of.decode === undefined).toBe(given.outputTokens === 1);
        const whole = of.secondsToFirstToken + (given.outputTokens - 1) * (of.secondsPerOutputToken ?? 0);
        expect(of.secondsPerBatch).toBe(whole);
        expect(of.itemsPerSecond * whole).toBeCloseTo(hardware.topology.ranks * given.batch * given.outputTokens, 3);
      }),
      { numRuns: 20 },
    );
  });

  test("of a decoded token increases with its context", () => {
    const seconds = [100, 1000, 3000].map(
      (promptTokens) => estimate({ batch: 8, promptTokens, outputTokens: 2 }).secondsPerOutputToken!,
    );
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    expect(new Set(seconds).size).toBe(3);
  });
});

test("a token decoded in the middle of the output represents all of them", () => {
  const generated = 9;
  const given = { batch: 2, promptTokens: 200, flashAttention: false };
  const one = Array.from(
    { length: generated },
    (_, i) => estimate({ ...given, promptTokens: 200 + i, outputTokens: 2 }).decode!,
  );
  const { decode } = estimate({ ...given, outputTokens: generated + 1 });
  for (const figure of ["flops", "bytes", "seconds"] as const)
    expect(decode![figure] / one.reduce((sum, pass) => sum + pass[figure] / generated, 0)).toBeCloseTo(1, 9);
});

test("ResNet-50 processes images in one pass", () => {
  const { decode, secondsPerOutputToken, itemsPerSecond, secondsToFirstToken, memory } = estimate(
    { batch: 64 },
    modelNamed("resnet-50") as never,
  );
  expect([decode, secondsPerOutputToken, memory.keyValueCache]).toEqual([undefined, undefined, 0]);
  expect(itemsPerSecond).toBeCloseTo((8 * 64) / secondsToFirstToken, 6);
});

test("the largest batch fits, and one more does not", () => {
  for (const shape of [llama, modelNamed("llama-2-13b"), modelNamed("resnet-50")])
    for (const hardware of [a800, hardwareNamed("rtx-4090")]) {
      const plan = inferencePlan(shape, { task: "inference", batch: 1 }, hardware.topology.ranks);
      const { batch, missingBytes } = largestInferenceBatch(shape, { task: "inference" }, hardware);
      const bytesOf = (batch: number): number =>
        Object.values(inferenceMemory(shape, { ...plan, batch })).reduce((sum, bytes) => sum + bytes, 0);
      expect(bytesOf(batch + 1)).toBeGreaterThan(hardware.device.memoryBytes);
      if (batch > 0) expect(bytesOf(batch)).toBeLessThanOrEqual(hardware.device.memoryBytes);
      else expect(missingBytes).toBe(bytesOf(1) - hardware.device.memoryBytes);
    }
  expect(largestInferenceBatch(modelNamed("llama-2-13b"), { task: "inference" }, hardwareNamed("rtx-4090")).batch).toBe(
    0,
  );
});

test("rejects invalid configurations", () => {
  const refused = (given: object, message: string, shape: typeof llama = llama): void =>
    expect(() => estimate(given as Partial<InferenceConfiguration>, shape)).toThrow(message);
  refused({ batch: 0 }, "batch is 0, but must be a whole number from 1");
  refused({ prompt: 5 }, 'inference has no setting "prompt"; its settings are task, batch');
  refused({ promptTokens: 0 }, "promptTokens is 0");
  refused({ outputTokens: 0 }, "outputTokens is 0");
  refused({ weights: "i2" }, "weights is i2, but must be one of f32, f16, bf16, i8, i4");
  refused({ tensorParallel: 5 }, "tensorParallel is 5 on 8 ranks");
  const gpt = modelNamed("gpt-2") as TransformerShape;
  refused(
    { promptTokens: 1000, outputTokens: 26 },
    "promptTokens + outputTokens - 1 is 1025, but gpt-2 has 1024 learned positions",
    gpt,
  );
  expect(estimate({ promptTokens: 1000, outputTokens: 25 }, gpt).plan.outputTokens).toBe(25);
  expect(estimate({ promptTokens: 1024 }, gpt).plan.outputTokens).toBe(1);
  const resNet = modelNamed("resnet-50") as never;
  refused(
    { promptTokens: 5 },
    "promptTokens is set, but has no effect on resnet-50, which is not a transformer",
    resNet,
  );
  refused({ weights: "i4" }, "resnet-50 has no layers to quantize", resNet);
});
