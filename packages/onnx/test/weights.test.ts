import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpt, type Model } from "@skein/models";
import { evaluate, gather, mapTree, NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { fromF16Bits, toF16Bits } from "@skein/tensor-core/backend";
import { firstDifference } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withExternalData } from "../src/external-data.ts";
import { exportOnnx, exportOnnxFiles, type OnnxSource } from "../src/index.ts";
import type { OnnxTensor } from "../src/proto.ts";
import { runOnnx } from "./run-onnx.ts";

interface Weights {
  readonly params: unknown;
  readonly state: unknown;
}

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-onnx-"))));
afterAll(() => rmSync(folder, { recursive: true }));

const reference = referenceBackend();
const model = gpt({ vocabulary: 61, contextLength: 6, width: 32, numLayers: 2, numHeads: 2 }) as Model;
const apply = (weights: Weights, tokens: Tensor): Tensor =>
  model.apply(weights.params, weights.state, tokens, { train: false })[0];
const samples = NdArray.from([3, 1, 4, 1, 5, 9, 60, 0, 7, 7, 2, 11], [2, 6], "i32");

const made = async (): Promise<Weights> =>
  (await evaluate((key: Tensor) => model.init(key) as never, reference)(randomKey(7))) as unknown as Weights;
const sourceOf = (weights: Weights): OnnxSource<Weights> => ({
  fn: (own, { tokens }) => ({ logits: apply(own, tokens!) }),
  weights: weights as never,
  inputs: { tokens: { dtype: "i32", shape: [6] } },
  batch: "dynamic",
});
const logitsOf = async (file: Uint8Array | string): Promise<number[]> =>
  (await runOnnx(file, { tokens: samples }))["logits"]!.toNumbers();
const oursOf = async (weights: Weights): Promise<number[]> =>
  ((await evaluate(apply as never, reference)(weights as never, samples as never)) as NdArray).toNumbers();

const writeFiles = (name: string, { model: own, weights }: ReturnType<typeof exportOnnxFiles>): string => {
  const path = join(folder, name);
  writeFileSync(path, own);
  const file = openSync(`${path}.data`, "w");
  for (const piece of weights) writeSync(file, piece);
  closeSync(file);
  return path;
};

describe("weights in a separate file", () => {
  test("large tensors begin at a page boundary, and no tensors overlap", () => {
    const sizes = fc.array(fc.oneof(fc.nat(5000), fc.constantFrom(0, 1023, 1024, 4096, 4097, 2 ** 20, 2 ** 20 + 1)), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(sizes, (all) => {
        const tensors = new Map(
          all.map((size, i): [string, OnnxTensor] => [
            `t${i}`,
            { type: "u8", dims: [size], bytes: new Uint8Array(size).fill(i + 1) },
          ]),
        );
        const { initialisers, pieces } = withExternalData(tensors, (all) => `${all.length}.data`);
        const file = Buffer.concat(pieces);
        let end = 0;
        for (const [name, { bytes, external }] of initialisers) {
          expect(bytes).toBe(tensors.get(name)!.bytes);
          expect(external === undefined).toBe(bytes.length < 1024);
          if (external === undefined) continue;
          expect(external.location).toBe(`${pieces.length}.data`);
          expect(external.offset % (bytes.length < 2 ** 20 ? 4096 : 65_536)).toBe(0);
          expect(external.offset).toBeGreaterThanOrEqual(end);
          end = external.offset + bytes.length;
          expect(file.subarray(external.offset, end).equals(bytes)).toBe(true);
        }
        expect(file.length).toBe(end);
      }),
      { numRuns: 40 },
    );
  });

  test("have the same bits, and the model does not contain them", async () => {
    const source = sourceOf(await made());
    const whole = exportOnnx(source);
    const files = exportOnnxFiles(source, { weightsFile: "apart.onnx.data", above: 10_000 });
    expect(files.model.length).toBeLessThan(whole.length / 2);
    expect(await logitsOf(writeFiles("apart.onnx", files))).toEqual(await logitsOf(whole));
    expect(exportOnnxFiles(source, { weightsFile: "x" })).toEqual({ model: whole, weights: [] });
    const named = exportOnnxFiles(source, { weightsFile: (pieces) => `${pieces.length}.data`, above: 10_000 });
    expect(Buffer.from(named.model).includes(`${named.weights.length}.data`)).toBe(true);
    expect(named.weights).toEqual(files.weights);
    for (const name of ["", "..", "../x", "a/b", "a\\b"]) {
      expect(() => exportOnnxFiles(source, { weightsFile: name })).toThrow(/must be a file name without folders/);
      expect(() => exportOnnxFiles(source, { weightsFile: () => name, above: 0 })).toThrow(
        /must be a file name without folders/,
      );
    }
  });

  test("larger than an ONNX file can be", { tags: "full", timeout: 300_000 }, async () => {
    const [rows, width] = [2 ** 20 + 7, 520];
    const table = new NdArray("f32", [rows, width], new Float32Array(rows * width));
    const chosen = [0, 12_345, rows - 1];
    for (const row of chosen) (table.data as Float32Array).fill(row / 3, row * width, (row + 1) * width);
    const source = {
      fn: (own: { readonly table: Tensor }, { rows: wanted }: Readonly<Record<string, Tensor>>) => ({
        found: gather(own.table, wanted!),
      }),
      weights: { table },
      inputs: { rows: { dtype: "i32", shape: [3] } },
    } as const;
    expect(table.data.byteLength).toBeGreaterThan(2 ** 31);
    expect(() => exportOnnx(source)).toThrow(/exportOnnxFiles/);
    const path = writeFiles("large.onnx", exportOnnxFiles(source, { weightsFile: "large.onnx.data" }));
    expect(statSync(`${path}.data`).size).toBe(table.data.byteLength);
    const { found } = await runOnnx(path, { rows: NdArray.from(chosen, [3], "i32") });
    expect(found!.toNumbers()).toEqual(chosen.flatMap((row) => Array<number>(width).fill(Math.fround(row / 3))));
  });
});

describe("f16 weights", () => {
  test("give the logits of weights rounded to f16, in half the bytes", async () => {
    const weights = await made();
    const bytes = exportOnnx({ ...sourceOf(weights), weightType: "f16" });
    expect(bytes.length).toBeLessThan(0.65 * exportOnnx(sourceOf(weights)).length);
    const rounded = mapTree(weights as never, (array: NdArray) =>
      array.dtype === "f32" && array.shape.length > 1
        ? NdArray.from(
            array.toNumbers().map((value) => fromF16Bits(toF16Bits(value))),
            array.shape,
          )
        : array,
    ) as Weights;
    const [ours, exact, theirs] = [await oursOf(rounded), await oursOf(weights), await logitsOf(bytes)];
    const scale = Math.max(...ours.map(Math.abs));
    expect(firstDifference(theirs, ours, { absolute: 1e-5 * scale, relative: 0 })).toBeUndefined();
    expect(firstDifference(theirs, exact, { absolute: 3e-3 * scale, relative: 0 })).toBeUndefined();
    expect(firstDifference(theirs, exact, { absolute: 1e-6 * scale, relative: 0 })).toBeDefined();
  });

  test("are rejected beyond the range of f16, and may be stored in a separate file", async () => {
    const table = NdArray.from([1, 2, 3, 70_000], [2, 2]);
    const source = (own: NdArray) => ({
      fn: (weights: { readonly table: Tensor }, { rows }: Readonly<Record<string, Tensor>>) => ({
        found: gather(weights.table, rows!),
      }),
      weights: { table: own },
      inputs: { rows: { dtype: "i32", shape: [1] } } as const,
      weightType: "f16" as const,
    });
    expect(() => exportOnnx(source(table))).toThrow(
      /^table holds 70000, but the maximum of f16 is 65504; omit weightType/,
    );
    const large = NdArray.from(
      Array.from({ length: 1200 }, (_, i) => i / 8),
      [600, 2],
    );
    const path = writeFiles("half.onnx", exportOnnxFiles(source(large), { weightsFile: "half.onnx.data", above: 0 }));
    expect(statSync(`${path}.data`).size).toBe(2400);
    const { found } = await runOnnx(path, { rows: NdArray.from([599], [1], "i32") });
    expect(found!.toNumbers()).toEqual([1198 / 8, 1199 / 8]);
  });
});
