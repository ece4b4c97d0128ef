import fc from "fast-check";
import { expect, test } from "vitest";
import { boundedLine, visibleLine, visibleText } from "./visible-text.ts";

const odd = fc.constantFrom(...'\u001b\u0007\u009b\u0085\u2028\u202e\u200f\ufeff\n\r\t\u0000\u007f\\"é世🧶', "\ud800");
const text = fc.array(fc.oneof(odd, fc.string({ unit: "binary" })), { maxLength: 30 }).map((pieces) => pieces.join(""));

test("escapes characters that a terminal interprets, and keeps all others", () => {
  expect(visibleLine("a\u001b]0;b\u0007\n\t\u009b\u202eé世🧶")).toBe(
    String.raw`a\u001b]0;b\u0007\n\t\u009b\u202eé世🧶`,
  );
  expect(visibleText("a\u001b[2J\r\n\tb\rc")).toBe(`a${String.raw`\u001b[2J`}\n\tb${String.raw`\rc`}`);
  fc.assert(
    fc.property(text, (one) => {
      expect(visibleLine(one)).not.toMatch(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/u);
      expect(visibleText(one).replaceAll(/[\n\t]/g, "")).not.toMatch(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/u);
      expect(visibleLine(visibleLine(one))).toBe(visibleLine(one));
    }),
  );
});

test("JSON keeps its meaning when it is escaped", () => {
  fc.assert(
    fc.property(fc.record({ a: text, b: fc.array(text, { maxLength: 3 }) }), (value) => {
      expect(JSON.parse(visibleLine(JSON.stringify(value)))).toEqual(value);
      expect(JSON.parse(visibleText(JSON.stringify(value)))).toEqual(value);
    }),
  );
});

test("keeps the beginning and the end of a long message", () => {
  const message = "/a/é 漢 🐋.txt cannot be read (ENOENT); name a file";
  expect(boundedLine(message)).toBe(message);
  const long = boundedLine(`begin ${"x".repeat(1e6)} end`);
  expect(long).toMatch(/^begin x+ … x+ end$/);
  expect(long.length).toBeLessThan(4000);
});
