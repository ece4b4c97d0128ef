import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { storeKey } from "../src/autotune/choice-store.ts";
import { trainMatmulModel } from "../src/autotune/matmul-model.ts";
import { fileChoiceStore } from "../src/node.ts";

const folders: string[] = [];
const folder = async (): Promise<string> => {
  folders.push(await mkdtemp(join(tmpdir(), "skein-choices-")));
  return folders.at(-1)!;
};
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const path of folders.splice(0)) await rm(path, { recursive: true });
});

const model = trainMatmulModel("an adapter", [], { rule: () => "naive" });

test("a file store returns what was stored, and leaves no temporary file", async () => {
  const path = join(await folder(), "deep", "er");
  expect(await fileChoiceStore(path).load("an adapter")).toBeUndefined();
  await fileChoiceStore(path).save(model);
  await fileChoiceStore(path).save(model);
  expect(await fileChoiceStore(path).load("an adapter")).toEqual(model);
  expect(await readdir(path)).toEqual([`${storeKey("an adapter")}.json`]);
});

test("uses the folder in the environment by default", async () => {
  const path = await folder();
  vi.stubEnv("SKEIN_CACHE_DIR", path);
  await fileChoiceStore().save(model);
  expect(await readdir(path)).toHaveLength(1);
});

test("rejects a file that is not a model, with the cure", async () => {
  const path = await folder();
  await writeFile(join(path, `${storeKey("an adapter")}.json`), "[]");
  await expect(fileChoiceStore(path).load("an adapter")).rejects.toThrow(/measure the device again/);
});
