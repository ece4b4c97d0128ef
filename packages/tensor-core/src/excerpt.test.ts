import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excerpt, excerptName } from "./excerpt.ts";

describe("excerpt", () => {
  it("shows a short value as JSON does", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        const ascii = /^[ -~]*$/.test(json);
        if (ascii && json.length <= 60 && !json.includes("-0")) expect(excerpt(value)).toBe(json);
      }),
    );
    expect(excerpt(undefined)).toBe("nothing");
    expect(excerpt({ a: [1, "b", null] })).toBe('{"a":[1,"b",null]}');
  });

  it("is one line of bounded length without terminal control characters, for any value", () => {
    fc.assert(
      fc.property(
        fc.anything({ maxDepth: 5, withNullPrototype: true, withBigInt: true }),
        fc.integer({ min: 4, max: 80 }),
        (value, most) => {
          const text = excerpt(value, most);
          expect(text.length).toBeLessThanOrEqual(most);
          expect(text).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
        },
      ),
    );
    expect(excerpt("a\u001b[2J\u009b\n")).toBe(String.raw`"a\u001b[2J\u009b\n"`);
  });

  it("accepts values that are deep, wide, or contain themselves", () => {
    let deep: unknown = 0;
    for (let i = 0; i < 100_000; i++) deep = i % 2 === 0 ? [deep] : { a: deep };
    expect(excerpt(deep)).toMatch(/^\{"a":\[\{"a":.*\.\.\.$/);
    const own: unknown[] = [];
    own.push(own);
    expect(excerpt(own)).toMatch(/^\[\[\[+\.\.\.$/);
    expect(excerpt(new Array(1e9))).toMatch(/^\[nothing,.*\.\.\.$/);
    expect(excerpt("x".repeat(1e7))).toBe(`"${"x".repeat(56)}...`);
  });
});

describe("excerptName", () => {
  it("shows a short name unchanged, and the start and more of the end of a long one, on one line of bounded length", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.integer({ min: 12, max: 80 }), (name, most) => {
        const text = excerptName(name, most);
        expect(text.length).toBeLessThanOrEqual(most);
        expect(text).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
        if (excerpt(name, 10_000).length <= most) expect(text).toBe(excerpt(name, most));
        else expect(text.slice(-5)).toBe(excerpt(name, 10_000).slice(-5));
      }),
    );
    expect(excerptName("encoder.layers.10.attention.output.bias", 24)).toBe('"encoder....output.bias"');
    expect(excerptName("x".repeat(1e7)).length).toBe(60);
  });
});
