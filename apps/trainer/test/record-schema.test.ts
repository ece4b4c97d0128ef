import { recordSchema } from "@skein/cli/node";
import { MetricTable } from "@skein/run-files";
import { totalSums } from "@skein/step/node";
import {
  jit,
  NdArray,
  readSafetensors,
  referenceBackend,
  type Tensor,
  multiply,
  writeSafetensors,
} from "@skein/tensor-core";
import { arrayRecords, batchTree } from "@skein/data";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";

/** Arbitrary names, including names that plain objects inherit. */
const name = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"),
  fc.string({ minLength: 1 }).filter((text) => !text.includes(".")),
);
const recordOf = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<Readonly<Record<string, T>>> =>
  fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 }).map(Object.fromEntries);

test("a record schema keeps every own key, and reports the path of an invalid value", () => {
  const schema = recordSchema(z.object({ size: z.number() }));
  fc.assert(
    fc.property(recordOf(fc.record({ size: fc.integer() })), (record) => {
      const parsed = schema.parse(JSON.parse(JSON.stringify(record)));
      expect(Object.entries(parsed)).toEqual(Object.entries(record));
      expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    }),
  );
  for (const [input, path, code] of [
    [3, [], "invalid_type"],
    [null, [], "invalid_type"],
    [[], [], "invalid_type"],
    [{ a: { size: 1 }, b: { size: "x" } }, ["b", "size"], "invalid_type"],
  ] as const)
    expect(schema.safeParse(input).error!.issues).toMatchObject([{ path, code }]);
  expect(z.strictObject({ all: schema }).safeParse({ all: { b: {} } }).error!.issues[0]!.path).toEqual([
    "all",
    "b",
    "size",
  ]);
});

test("names that objects inherit are names like others to trees, files, metrics and sums", async () => {
  const backend = referenceBackend();
  const doubled = jit(
    (tree: Readonly<Record<string, Tensor>>) =>
      Object.fromEntries(Object.entries(tree).map(([key, x]) => [key, multiply(x, 2)])),
    backend,
  );
  await fc.assert(
    fc.asyncProperty(
      recordOf(fc.integer({ min: -9, max: 9 })),
      recordOf(fc.integer({ min: -9, max: 9 })),
      async (a, b) => {
        const entries = Object.entries(a);
        const arrays = Object.fromEntries(entries.map(([key, value]) => [key, NdArray.from([value, 1])]));
        const metadata = Object.fromEntries(Object.entries(b).map(([key, value]) => [key, `${value}`]));
        const file = readSafetensors(writeSafetensors(new Map(Object.entries(arrays)), metadata));
        expect([...file.tensors].sort()).toEqual(Object.entries(arrays).sort());
        expect(Object.entries(file.metadata).sort()).toEqual(Object.entries(metadata).sort());

        for (const tree of [a, b]) {
          const result = (await doubled(
            Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, NdArray.from([value])])),
          )) as Readonly<Record<string, never>>;
          expect(Object.keys(result).sort()).toEqual(Object.keys(tree).sort());
          for (const [key, value] of Object.entries(tree))
            expect((await backend.download(result[key]!)).item()).toBe(2 * value + 0);
        }

        if (entries.length > 0) {
          const { fields } = arrayRecords(arrays);
          expect(Object.keys(fields).sort()).toEqual(Object.keys(a).sort());
          expect(Object.entries(batchTree(fields)).sort()).toEqual(Object.entries(fields).sort());
        }

        const sums = totalSums([a, b, a].map((part) => ({ ...part, lossSum: 1, count: 2 })));
        expect(Object.getPrototypeOf(sums)).toBe(Object.prototype);
        for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
          const of = (part: Readonly<Record<string, number>>): number => (Object.hasOwn(part, key) ? part[key]! : 0);
          if (key !== "lossSum" && key !== "count")
            expect(Object.getOwnPropertyDescriptor(sums, key)?.value).toBe(2 * of(a) + of(b));
        }

        const table = new MetricTable();
        table.takeLine(JSON.stringify({ ...a, type: "own", step: 1 }));
        for (const [key, value] of entries)
          if (key !== "type" && key !== "step") expect(table.byType.get("own")!.value(key, 0)).toBe(value);
      },
    ),
  );
});
