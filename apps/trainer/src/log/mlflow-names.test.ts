import { posix } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { mlflowKey, mlflowText, uniqueKeys } from "./mlflow-names.ts";

test("names consist of characters that MLflow accepts", () => {
  for (const [name, key] of [
    ["train/block-1.load_E.0", "train/block-1.load_E.0"],
    [`a"b:c\n${"x".repeat(300)}`, `a_b_c_${"x".repeat(244)}`],
    ["train//a/./b/../c/", "train/a/b/__/c"],
    ["/Größe der Gewichte", "Größe der Gewichte"],
    ["../..", "__/__"],
    ["...x/...y", "__.x/...y"],
    ["", "_"],
    ["/./", "_"],
  ] as const)
    expect(mlflowKey(name)).toBe(key);
});

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 600 }),
  fc
    .array(fc.constantFrom("a", "/", ".", "..", " ", "😀", "\ud83d", "\0", "é"), { maxLength: 600 })
    .map((all) => all.join("")),
);

test("law: every name and value is accepted by a server, and the names of a request are unique", () =>
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (names) => {
      // Each name occurs twice, because names that are equal after truncation must become unique.
      const entries = uniqueKeys([...names, ...names].map((key) => ({ key: mlflowKey(key) })));
      for (const { key } of entries) {
        expect(key).toMatch(/^[\p{L}\p{N}_\-. /]{1,250}$/u);
        expect(posix.normalize(key)).toBe(key);
        expect(key).not.toMatch(/^(\/|\.\.|\.$)/);
      }
      expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length);
      for (const value of names) {
        expect(mlflowText(value).isWellFormed()).toBe(true);
        expect(mlflowText(value)).not.toContain("\0");
        expect(mlflowText(value).length).toBeLessThanOrEqual(500);
        if (value.length <= 500 && value.isWellFormed()) expect(mlflowText(value)).toBe(value.replaceAll("\0", " "));
      }
    }),
  ));
