import { expect, test } from "vitest";
import { readAddress } from "./address.ts";

test("reads backend, model, batch and seed from the query string, with defaults", () => {
  expect(readAddress("")).toEqual({
    backend: "best",
    settings: { model: "cnn", batchSize: 64, ranks: 1, compression: "none", seed: 1 },
  });
  expect(readAddress("?backend=cpu&model=mlp&batch=16&ranks=2&compression=top-k&seed=7")).toEqual({
    backend: "cpu",
    settings: { model: "mlp", batchSize: 16, ranks: 2, compression: "top-k", seed: 7 },
  });
});

test("rejects unsupported values and lists the supported ones", () => {
  expect(() => readAddress("?backend=gpu")).toThrow(
    "the address has backend=gpu, but the choices are best, webgpu, cpu",
  );
  expect(() => readAddress("?batch=3")).toThrow("batch=3, but the choices are 16, 32, 64, 128, 256");
  expect(() => readAddress("?seed=-1")).toThrow("seed=-1, but it must be an integer");
});
