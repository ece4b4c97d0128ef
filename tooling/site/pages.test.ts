import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../repository.ts";
import { publishedDoors } from "./doors.ts";
import { handWrittenPages, pageText } from "./pages.ts";

test("every import path of a published package has a source file", () => {
  const names = publishedDoors().map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["@skein/tensor-core", "@skein/data/node", "skein-train/profiling"]));
  expect(names.filter((name) => /testing|measuring|report|launcher/.test(name))).toEqual([]);
  expect(publishedDoors().filter(({ file }) => !existsSync(join(repository, file)))).toEqual([]);
});

test("makes links between pages relative, and other links absolute", () => {
  const links = (path: string): string[] =>
    [...pageText(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  // The README of packages/compressors links to docs/algorithms.md by its URL in the repository.
  expect(links("packages/compressors/README.md")).toContain("./../../docs/algorithms.md#compressors");
  for (const { path } of handWrittenPages()) {
    for (const target of links(path)) {
      if (/^[a-z]+:|^#/.test(target)) expect(target).not.toMatch(/skein\/(blob|tree)\/main\/docs\/\S+\.md/);
      else expect(existsSync(join(repository, dirname(path), target.split("#")[0]!)), `${path}: ${target}`).toBe(true);
    }
  }
});

test("lists guides in the order of their index", () => {
  const guides = handWrittenPages().filter(({ group }) => group === "Guides");
  expect(guides.slice(0, 2).map(({ title }) => title)).toEqual(["Guides", "Your first model"]);
});
