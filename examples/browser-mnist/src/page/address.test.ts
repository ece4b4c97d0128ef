import { expect, test } from "vitest";
import { readAddress } from "./address.ts";

test("an address names backend, model, batch and seed; what it leaves out has a default", () => {
  expect(readAddress("")).toEqual({
    backend: "best",
    settings: { model: "cnn", batchSize: 64, ranks: 1, compression: "none", seed: 1 },
  });
  expect(readAddress("?backend=cpu&model=mlp&batch=16&ranks=2&compression=top-k&seed=7")).toEqual({
    backend: "cpu",
    settings: { model: "mlp", batchSize: 16, ranks: 2, compression: "top-k", seed: 7 },
  });
});

test("an address that asks for what is not offered is refused, with what is", () => {
  expect(() => readAddress("?backend=gpu")).toThrow(
    "the address says backend=gpu, but it can only be best, webgpu, cpu",
  );
  expect(() => readAddress("?batch=3")).toThrow("batch=3, but it can only be 16, 32, 64, 128, 256");
  expect(() => readAddress("?seed=-1")).toThrow("seed=-1, but it must be a whole number");
});
