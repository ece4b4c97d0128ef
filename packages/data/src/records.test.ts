import { ArgumentError } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DataError } from "./errors.ts";
import { splitRecords } from "./cut-records.ts";
import { gatherBatch, byteRecords, type Records } from "./records.ts";
import { textRecords } from "./text.ts";

const bytesOf = (records: Records, field: string): number[] =>
  gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  )[field]!.toNumbers();

test("the two parts are the whole, in order, also for parts of parts, and share its memory", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 3, max: 40 }),
      fc.double({ min: 0.01, max: 0.99, noNaN: true }),
      (count, fraction) => {
        const bytes = Uint8Array.from({ length: 3 * count + 2 }, (_, i) => i);
        const all = byteRecords(count, { inputs: { bytes, offsetBytes: 2, strideBytes: 3, dtype: "u8", shape: [3] } });
        const { train, valid } = splitRecords(all, fraction);
        expect([train.count, valid.count].every((part) => part >= 1)).toBe(true);
        expect(valid.count).toBe(Math.max(1, Math.floor(count * fraction)));
        expect([...bytesOf(train, "inputs"), ...bytesOf(valid, "inputs")]).toEqual([...bytes.subarray(2)]);
        expect(valid.fields["inputs"]!.bytes).toBe(bytes);
        if (valid.count < 2) return;
        const again = splitRecords(valid, 0.5);
        expect([...bytesOf(again.train, "inputs"), ...bytesOf(again.valid, "inputs")]).toEqual(
          bytesOf(valid, "inputs"),
        );
      },
    ),
  );
});

test("the validation part of a text is its end; no target is in both parts", () => {
  const text = Uint8Array.from({ length: 41 }, (_, i) => i);
  const { train, valid } = splitRecords(textRecords(text, 4), 0.1);
  expect([train.count, bytesOf(valid, "inputs"), bytesOf(valid, "labels")]).toEqual([
    9,
    [36, 37, 38, 39],
    [37, 38, 39, 40],
  ]);
  expect(bytesOf(train, "labels").at(-1)).toBe(36);
});

test("rejects a split with an empty part", () => {
  const one = byteRecords(1, {
    inputs: { bytes: new Uint8Array(1), offsetBytes: 0, strideBytes: 1, dtype: "u8", shape: [] },
  });
  expect(() => splitRecords(one, 0.5)).toThrow(DataError);
  for (const fraction of [0, 1, Number.NaN]) expect(() => splitRecords(one, fraction)).toThrow(ArgumentError);
});
