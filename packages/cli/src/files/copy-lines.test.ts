import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { copyLines } from "./copy-lines.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-lines-"));
afterAll(() => rmSync(folder, { recursive: true }));
const [from, to] = [join(folder, "from"), join(folder, "to")];

test("wanted lines are copied whole, wherever a chunk ends; those longer than 64 chunks are skipped", () => {
  const letters = { unit: fc.constantFrom("a", "b", "é", "𝛼") };
  const line = fc.oneof(fc.string(letters), fc.string({ ...letters, maxLength: 150, size: "max" }), fc.constant(""));
  fc.assert(
    fc.property(fc.array(line), fc.integer({ min: 1, max: 40 }), fc.boolean(), (lines, pieceBytes, ended) => {
      writeFileSync(from, lines.join("\n") + (ended && lines.length > 0 ? "\n" : ""));
      const asked: string[] = [];
      const wanted = (text: string): boolean => !text.startsWith("b");
      copyLines(from, to, (text) => (asked.push(text), wanted(text)), pieceBytes);
      // There is no empty line after the last line end.
      const whole = ended ? lines : lines.at(-1) === "" ? lines.slice(0, -1) : lines;
      const short = whole.filter((text) => Buffer.byteLength(text) <= 64 * pieceBytes);
      expect(asked).toEqual(short);
      expect(readFileSync(to, "utf8")).toBe(
        short
          .filter(wanted)
          .map((text) => `${text}\n`)
          .join(""),
      );
    }),
    { numRuns: 300 },
  );
});

test.runIf(process.platform === "linux")("a file that never ends is refused", () => {
  symlinkSync("/dev/zero", join(folder, "endless"));
  expect(() => copyLines(join(folder, "endless"), to, () => true)).toThrow("is not a regular file; remove it");
});
