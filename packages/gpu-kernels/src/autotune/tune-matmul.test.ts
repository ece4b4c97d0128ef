import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../test/gpu.ts";
import type { MatmulRequest } from "../kernel.ts";
import type { WebGpuBackend } from "../webgpu-backend.ts";
import type { ChoiceStore } from "./choice-store.ts";
import type { MatmulModel } from "./matmul-model.ts";
import { defaultRequests, measureMatmul } from "./measure-matmul.ts";
import { tuneMatmul } from "./tune-matmul.ts";

const request = (rows: number, columns: number, inner: number, transposeB = false): MatmulRequest => ({
  batch: 1,
  rows,
  columns,
  inner,
  transposeA: false,
  transposeB,
  dtype: "f32",
});

test("default requests stay within the work limit, and cover every layout of training", () => {
  for (const software of [false, true]) {
    const requests = defaultRequests({ software, f16: true });
    expect(requests.length).toBeGreaterThan(100);
    expect(requests.some(({ transposeB }) => transposeB) && requests.some(({ transposeA }) => transposeA)).toBe(true);
    expect(requests.some(({ dtype }) => dtype === "f16")).toBe(!software);
    for (const { batch, rows, columns, inner } of requests)
      expect(2 * batch * rows * columns * inner).toBeLessThanOrEqual(software ? 5e7 : 2e10);
  }
});

describe.skipIf(!hasAdapter)("on the device of this machine", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test("validates and times every variant that can run, and skips the others", async () => {
    const requests = [request(9, 12, 16), request(9, 12, 16, true)];
    const variants = ["direct-4x4", "matrix-vector", "transpose-direct-4x4"];
    const { samples, rejected } = await measureMatmul(backend, { requests, variants });
    expect(rejected).toEqual([]);
    expect(samples.map((sample) => Object.keys(sample.seconds))).toEqual([
      ["direct-4x4"],
      ["direct-4x4", "transpose-direct-4x4"],
    ]);
    for (const { seconds } of samples) for (const time of Object.values(seconds)) expect(time).toBeGreaterThan(0);
  });

  test("rejects fewer than five repeats", async () => {
    await expect(measureMatmul(backend, { requests: [], repeats: 4 })).rejects.toThrow(
      /repeats is 4; .* at least 5 times/,
    );
  });

  test("stores a tuned model, and the next call loads it", async () => {
    const kept = new Map<string, MatmulModel>();
    const store: ChoiceStore = {
      load: async (adapter) => kept.get(adapter),
      save: async (model) => void kept.set(model.adapter, model),
    };
    const requests = [request(9, 12, 16), request(1, 12, 16)];
    const first = await tuneMatmul(backend, { store, requests, variants: ["direct-4x4", "matrix-vector"] });
    expect(kept.get(backend.facts.adapter)).toEqual(first.model);
    expect(first.model.samples).toBe(2);
    let measured = 0;
    const again = await tuneMatmul(backend, { store, requests, onProgress: () => measured++ });
    expect([measured, again.model]).toEqual([0, first.model]);
    expect(again.choices.matmulVariant!(requests[0]!)).toMatch(/./);
  });
});
