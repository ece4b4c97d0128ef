import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Contraction } from "@skein/cpu-kernels";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { chooser, isFaster, type MeasuredShape, readTable, type ShapeTable, tableDigest } from "./shape-table.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-blas-table-"));
afterAll(() => rmSync(folder, { recursive: true }));

const library = { name: "libopenblas.so.0", family: "OpenBLAS", version: "0.3.21", core: "" };
const tableOf = (shapes: readonly MeasuredShape[]): ShapeTable => ({
  format: "skein-blas-table",
  version: 1,
  library,
  shapes,
});

const size = fc.constantFrom(1, 2, 8, 32, 128, 512, 2048);
const contraction: fc.Arbitrary<Contraction> = fc.record({
  op: fc.constantFrom("matmul" as const, "conv2d" as const),
  variant: fc.constantFrom("nn", "nt"),
  rows: size,
  columns: size,
  inner: size,
});
const measured: fc.Arbitrary<MeasuredShape> = fc
  .tuple(contraction, fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 1000 }))
  .map(([shape, wasmMicroseconds, blasMicroseconds]) => ({ ...shape, wasmMicroseconds, blasMicroseconds }));

test("decides a measured shape by its own times, and other shapes only by shapes of the same kind", () => {
  const shapes = fc.uniqueArray(measured, {
    minLength: 1,
    maxLength: 40,
    selector: ({ op, variant, rows, columns, inner }) => [op, variant, rows, columns, inner].join(),
  });
  fc.assert(
    fc.property(shapes, contraction, (shapes, other) => {
      const prefers = chooser(tableOf(shapes));
      for (const shape of shapes) expect(prefers(shape)).toBe(isFaster(shape));
      const sameKind = shapes.filter(({ op, variant }) => op === other.op && variant === other.variant);
      if (sameKind.every((shape) => !isFaster(shape))) expect(prefers(other)).toBe(false);
      else if (sameKind.every(isFaster)) expect(prefers(other)).toBe(true);
    }),
  );
});

test("measures distance in doublings: 46 is close to 64, not to 32, and the last size counts beyond the end", () => {
  const product = { op: "matmul", variant: "nn", columns: 8, inner: 8 } as const;
  const prefers = chooser(
    tableOf([
      { ...product, rows: 32, wasmMicroseconds: 2, blasMicroseconds: 1 },
      { ...product, rows: 64, wasmMicroseconds: 1, blasMicroseconds: 2 },
    ]),
  );
  expect([1, 32, 40, 46, 64, 100_000].map((rows) => prefers({ ...product, rows }))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(prefers({ ...product, rows: 0 })).toBe(false);
});

test("ignores a gain within the measurement noise", () => {
  const shape = { op: "matmul", variant: "nn", rows: 8, columns: 8, inner: 8 } as const;
  expect(isFaster({ ...shape, wasmMicroseconds: 104, blasMicroseconds: 100 })).toBe(false);
  expect(isFaster({ ...shape, wasmMicroseconds: 106, blasMicroseconds: 100 })).toBe(true);
});

describe("a table file", () => {
  const file = join(folder, "table.json");
  const written = (content: unknown): string => {
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    return file;
  };
  const shape: MeasuredShape = {
    op: "matmul",
    variant: "nn",
    rows: 8,
    columns: 8,
    inner: 8,
    wasmMicroseconds: 2,
    blasMicroseconds: 1,
  };

  test("is read as written, and a changed time changes the digest", () => {
    const table = tableOf([shape]);
    expect(readTable(written(table))).toEqual(table);
    expect(tableDigest(readTable(file))).toBe(tableDigest(table));
    expect(tableDigest(tableOf([{ ...shape, blasMicroseconds: 1.001 }]))).not.toBe(tableDigest(table));
  });

  test.each([
    ["half of one", JSON.stringify(tableOf([shape])).slice(0, 60)],
    ["without shapes", tableOf([])],
    ["with a time of nothing", tableOf([{ ...shape, blasMicroseconds: 0 }])],
    ["of another version", { ...tableOf([shape]), version: 2 }],
    ["with an operator that is none", tableOf([{ ...shape, op: "sum" } as unknown as MeasuredShape])],
  ])("%s is rejected in one line with the cure", (_, content) => {
    const refused = (): unknown => {
      try {
        return readTable(written(content));
      } catch (error) {
        return error;
      }
    };
    expect(refused()).toMatchObject({
      code: "blas-table",
      message: expect.stringMatching(
        /^[^\n]*table\.json is not a table of measured shapes: [^\n]+; measure again with: skein-train blas build$/,
      ) as unknown,
    });
  });
});
