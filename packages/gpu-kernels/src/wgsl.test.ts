import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { wgsl } from "./wgsl.ts";

/** Calls `wgsl` with lines as in a template literal, because a tag is an ordinary function. */
const fill = (lines: readonly string[], fillings: readonly (string | string[])[], indent = 2): string => {
  const spaces = " ".repeat(indent);
  const source = ["", ...lines.map((line) => spaces + line), ""].join("\n");
  const texts = source.split("§");
  return wgsl(Object.assign(texts, { raw: texts }), ...fillings);
};

const line = fc.tuple(fc.nat(3), fc.constantFrom("x += 1u;", "for (;;) {", "}", "§", "§ + §;", "let a = §;"));
const lines = fc
  .array(line, { minLength: 1, maxLength: 8 })
  .map((all) => all.map(([depth, text], i) => " ".repeat(i === 0 ? 0 : 2 * depth) + text));
const filling = fc.oneof(
  fc.constantFrom("a", "", "a\nb", "if (c) {\n  a\n\n}"),
  fc.array(fc.constantFrom("a;", "", "b;\n  c;"), { maxLength: 3 }),
);
const template = lines.chain((all) => {
  const holes = all.join("").split("§").length - 1;
  return fc.record({ lines: fc.constant(all), fillings: fc.array(filling, { minLength: holes, maxLength: holes }) });
});

const words = (text: string): string => text.replace(/\s/g, "");

describe("wgsl", () => {
  test("keeps the indentation of a shader", () => {
    const sums = [0, 1].map((i) => `sum_${i} += x[at + ${i}u];`);
    const guard = "";
    const text = wgsl`
      fn main(group: u32, lane: u32) {
        ${guard}
        for (var at = 0u; at < ${8}u; at += 2u) {
          ${sums}
        }
      }
    `;
    expect(text).toBe(`fn main(group: u32, lane: u32) {
  for (var at = 0u; at < 8u; at += 2u) {
    sum_0 += x[at + 0u];
    sum_1 += x[at + 1u];
  }
}`);
  });

  test("does not depend on the indentation of the template", () => {
    fc.assert(
      fc.property(template, fc.nat(20), (made, indent) => {
        expect(fill(made.lines, made.fillings, indent)).toBe(fill(made.lines, made.fillings, 0));
      }),
    );
  });

  test("keeps all text and fillings in order", () => {
    fc.assert(
      fc.property(template, (made) => {
        let next = 0;
        const expected = made.lines.join("").replaceAll("§", () => [made.fillings[next++]!].flat().join(""));
        expect(words(fill(made.lines, made.fillings))).toBe(words(expected));
      }),
    );
  });

  test("indents every line of a filling like the line of its hole", () => {
    fc.assert(
      fc.property(fc.nat(3), filling, (depth, made) => {
        const shown = [made].flat().filter((piece) => piece !== "");
        const spaces = " ".repeat(2 * depth);
        const expected = shown.flatMap((piece) => piece.split("\n")).map((text) => (text === "" ? "" : spaces + text));
        expect(fill(["begin", `${spaces}§`, "end"], [made])).toBe(["begin", ...expected, "end"].join("\n"));
      }),
    );
  });
});
