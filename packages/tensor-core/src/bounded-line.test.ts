import fc from "fast-check";
import { expect, test } from "vitest";
import { boundedLine } from "./bounded-line.ts";

test("keeps ordinary messages, and their beginning and end in any case", () => {
  expect(boundedLine("/a/é 漢 🐋.txt cannot be read (ENOENT); name a file")).toBe(
    "/a/é 漢 🐋.txt cannot be read (ENOENT); name a file",
  );
  expect(boundedLine("\u001b]0;x\u0007a\r\nb\u202e")).toBe("?]0;x?a??b?");
  const long = boundedLine(`begin ${"x".repeat(1e6)} end`);
  expect(long).toMatch(/^begin x+ … x+ end$/);
  expect(long.length).toBeLessThan(4000);
});

test("is one line for any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(boundedLine(text)).not.toMatch(/\p{C}/u);
    }),
  );
});
