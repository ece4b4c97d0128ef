import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { syntaxErrorLocation } from "./syntax-place.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein syntax-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test.each<[string, readonly string[], string | undefined]>([
  ["the first file", ["export const a = 1;\nexport default (;\n", "const b;\n"], "0.mjs:2"],
  ["another file", ['import "@skein/nowhere";\nthrow new Error("run");\n', "\n\nconst of;\n"], "1.mjs:3"],
  ["no file", ["export default 1;\n", ""], undefined],
])("the location of a syntax error in %s", async (_, texts, place) => {
  const files = texts.map((__, i) => join(folder, `${i}.mjs`));
  for (const [i, text] of texts.entries()) writeFileSync(files[i]!, text);
  expect(await syntaxErrorLocation([...files, join(folder, "gone.mjs")])).toBe(place && join(folder, place));
});
