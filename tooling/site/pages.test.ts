import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../repository.ts";
import { publishedDoors } from "./doors.ts";
import { handWrittenPages, pageText } from "./pages.ts";

test("every door of every published package is a source file", () => {
  const names = publishedDoors().map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["@skein/tensor-core", "@skein/data/node", "skein-train/profiling"]));
  expect(names.filter((name) => /testing|measuring|report|launcher/.test(name))).toEqual([]);
  expect(publishedDoors().filter(({ file }) => !existsSync(join(repository, file)))).toEqual([]);
});

test("links between pages are relative, whatever way they are written; others lead to the repository", () => {
  const links = (path: string): string[] =>
    [...pageText(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  // Says packages/compressors' page by its address in the repository.
  expect(links("packages/compressors/README.md")).toContain("./../../docs/algorithms.md#compressors");
  for (const { path } of handWrittenPages()) {
    for (const target of links(path)) {
      if (/^[a-z]+:|^#/.test(target)) expect(target).not.toMatch(/skein\/(blob|tree)\/main\/docs\/\S+\.md/);
      else expect(existsSync(join(repository, dirname(path), target.split("#")[0]!)), `${path}: ${target}`).toBe(true);
    }
  }
});

test("guides stand in the order of their index", () => {
  const guides = handWrittenPages().filter(({ group }) => group === "Guides");
  expect(guides.slice(0, 2).map(({ title }) => title)).toEqual(["Guides", "Your first model"]);
});
