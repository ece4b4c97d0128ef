import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { jobJsonSchema, jobSchema } from "@skein/job/node";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { jobKeys, type SchemaNode } from "./job-keys.ts";
import { jobReference } from "./job-reference.ts";

const jobsFolder = join(import.meta.dirname, "../../jobs");
const schema = jobJsonSchema() as SchemaNode;

const readyJobs = Object.fromEntries(
  readdirSync(jobsFolder)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => [name, parse(readFileSync(join(jobsFolder, name), "utf8")) as unknown]),
);

test("docs/job-reference.md is what the schema says; vitest -u writes it", async () => {
  await expect(jobReference(schema, readyJobs)).toMatchFileSnapshot("../../../../docs/job-reference.md");
});

test("the reference has every key of the ready jobs", () => {
  const known = new Set(jobKeys(schema).map(({ path }) => path.join(".")));
  const pathsOf = (value: unknown, path: readonly string[]): string[] =>
    typeof value !== "object" || value === null || Array.isArray(value)
      ? [path.join(".")]
      : Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]));
  for (const [name, job] of Object.entries(readyJobs))
    for (const path of pathsOf(job, [])) expect(known, `${name}: ${path}`).toContain(path);
});

test("every key has a meaning", () => {
  const silent = jobKeys(schema).filter(({ path, node }) => path.at(-1) !== "kind" && (node.description ?? "") === "");
  expect(silent.map(({ path }) => path.join("."))).toEqual([]);
});

test("defaults of the reference are those of the schema", () => {
  for (const job of Object.values(readyJobs)) {
    const checked = jobSchema.parse(job) as unknown as Readonly<Record<string, unknown>>;
    for (const { path, node } of jobKeys(schema))
      if (path.length === 1 && node.default !== undefined && !Object.hasOwn(job as object, path[0]!))
        expect(checked[path[0]!]).toMatchObject(node.default as object);
  }
});
