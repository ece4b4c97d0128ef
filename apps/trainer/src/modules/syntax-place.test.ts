import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { syntaxPlace } from "./syntax-place.ts";

let folder: string;
beforeEach(() => (folder = realpathSync(mkdtempSync(join(tmpdir(), "skein syntax-")))));
afterEach(() => rmSync(folder, { recursive: true }));

test.each<[string, Record<string, string>, string | undefined]>([
  ["a file itself", { "a.mjs": "export const a = 1;\nexport default (;\n" }, "a.mjs:2"],
  ["a file that it imports", { "a.mjs": 'import "./b.mjs";\n', "b.mjs": "\n\nconst of;\n" }, "b.mjs:3"],
  ["an import of what is not there", { "a.mjs": '\nimport { b } from "./b.mjs";\n', "b.mjs": "" }, "a.mjs:2"],
  ["nothing", { "a.mjs": "export default 1;\n" }, undefined],
])("the place of a fault in %s", async (_, files, place) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  expect(await syntaxPlace(pathToFileURL(join(folder, "a.mjs")).href)).toBe(place && join(folder, place));
});
