import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveBindings, type PlacedBinding, type BufferRange } from "./resolve-bindings.ts";

const overlap = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;

const sameRange = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset === b.offset && a.bytes === b.bytes;

const copyRegion = 99;
const alignment = 32;

/**
 * Generates bindings of a pass over few regions, so that they often overlap. Written bindings never overlap partly, as
 * the memory plan guarantees.
 */
const bindingLists = fc
  .array(
    fc.record({
      region: fc.integer({ min: 0, max: 2 }),
      offset: fc.integer({ min: 0, max: 6 }).map((i) => 32 * i),
      bytes: fc.integer({ min: 1, max: 6 }).map((i) => 16 * i),
      type: fc.constantFrom("array<f32>", "array<vec4<f32>>"),
      access: fc.constantFrom("read" as const, "write" as const),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((list): PlacedBinding[] => {
    const written: BufferRange[] = [];
    return list.map(({ type, access, ...at }, i) => {
      const conflict = access === "write" && written.some((other) => overlap(other, at));
      if (access === "write" && !conflict) written.push(at);
      return { binding: { name: `b${i}`, type, source: { input: i }, access: conflict ? "read" : access }, at };
    });
  });

describe("resolving bindings", () => {
  test("gives bindings that WebGPU accepts, for any addresses", () => {
    fc.assert(
      fc.property(bindingLists, (bindings) => {
        const { variables, renamed, copies } = resolveBindings(bindings, copyRegion, alignment);
        // No region is read-only and writable at once, and no two writable variables overlap.
        for (const a of variables)
          for (const b of variables) {
            if (a === b) continue;
            expect(a.at.region === b.at.region && a.writable !== b.writable).toBe(false);
            expect(a.writable && b.writable && overlap(a.at, b.at)).toBe(false);
          }
        // Every binding has a variable with its type, which covers the bytes of the binding or a copy of these bytes.
        for (const { binding, at } of bindings) {
          const variable = variables.find(({ name }) => name === (renamed.get(binding.name) ?? binding.name))!;
          expect(variable.type).toBe(binding.type);
          const copy = copies.find(
            ({ toOffset }) => variable.at.region === copyRegion && toOffset === variable.at.offset,
          );
          expect(sameRange(copy?.from ?? variable.at, at)).toBe(true);
          if (binding.access === "write") {
            expect(variable.writable).toBe(true);
            expect(copy).toBeUndefined();
          }
        }
        // Copies do not overlap, are aligned, and each copy is read.
        copies.forEach(({ from, toOffset }, i) => {
          expect(toOffset % alignment).toBe(0);
          expect(toOffset).toBeGreaterThanOrEqual(i === 0 ? 0 : copies[i - 1]!.toOffset + copies[i - 1]!.from.bytes);
          expect(
            variables.some(({ at }) => at.region === copyRegion && at.offset === toOffset && at.bytes === from.bytes),
          ).toBe(true);
        });
        // The names of variables are names of bindings, without duplicates.
        expect(new Set(variables.map(({ name }) => name)).size).toBe(variables.length);
      }),
      { numRuns: 2000 },
    );
  });

  const placed = (
    name: string,
    access: "read" | "write",
    region: number,
    offset: number,
    bytes: number,
    type = "array<f32>",
  ): PlacedBinding => ({
    binding: { name, type, source: { input: 0 }, access },
    at: { region, offset, bytes },
  });

  test("makes a result in place one variable", () => {
    const { variables, renamed, copies } = resolveBindings(
      [placed("x", "read", 0, 0, 64), placed("y", "write", 0, 0, 64)],
      copyRegion,
      alignment,
    );
    expect(variables).toEqual([
      { name: "y", type: "array<f32>", writable: true, at: { region: 0, offset: 0, bytes: 64 } },
    ]);
    expect([...renamed]).toEqual([["x", "y"]]);
    expect(copies).toEqual([]);
  });

  test("copies no operands that are only read, however they overlap", () => {
    const { variables, copies } = resolveBindings(
      [placed("x", "read", 0, 0, 64), placed("y", "read", 0, 32, 64)],
      copyRegion,
      alignment,
    );
    expect(variables.map(({ writable }) => writable)).toEqual([false, false]);
    expect(copies).toEqual([]);
  });

  test("reads an operand from a copy if it partly overlaps a result, or has another type", () => {
    const partly = resolveBindings(
      [placed("x", "read", 0, 0, 64), placed("y", "write", 0, 32, 64)],
      copyRegion,
      alignment,
    );
    expect(partly.copies).toEqual([{ from: { region: 0, offset: 0, bytes: 64 }, toOffset: 0 }]);
    const otherwise = resolveBindings(
      [placed("x", "read", 0, 0, 64, "array<u32>"), placed("y", "write", 0, 0, 64)],
      copyRegion,
      alignment,
    );
    expect(otherwise.copies).toHaveLength(1);
  });

  test("rejects two results that overlap", () => {
    expect(() =>
      resolveBindings([placed("x", "write", 0, 0, 64), placed("y", "write", 0, 32, 64)], copyRegion, alignment),
    ).toThrow(/overlaps/);
  });
});
