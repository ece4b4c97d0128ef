import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { NdArray } from "@skein/tensor-core";
import { afterEach, describe, expect, test } from "vitest";
import { type CarriedTensor, type Config, withNewHead } from "../src/index.ts";
import { loadBody, loadPretrained } from "../src/node.ts";
import { modelLeaves } from "../src/model-leaves.ts";
import { openConfig } from "../src/open-config.ts";
import { checkpointFolder, fileOf, tensorsOf } from "./checkpoints.ts";

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

const configOf = (name: string): Config =>
  JSON.parse(readFileSync(join(checkpointFolder(name), "config.json"), "utf8")) as Config;

/** Returns the path of a copy of a checkpoint with entries altered by `change`. */
const changed = (name: string, change: (entry: [string, CarriedTensor]) => [string, CarriedTensor][]): string => {
  const folder = mkdtempSync(join(tmpdir(), "skein-head-"));
  made.push(folder);
  writeFileSync(
    join(folder, "model.safetensors"),
    fileOf(new Map([...tensorsOf(checkpointFolder(name))].flatMap(change))),
  );
  writeFileSync(join(folder, "config.json"), JSON.stringify(configOf(name)));
  return folder;
};

const numClasses = 7;
const body = (folder: string, name: string): Promise<ReadonlyMap<string, NdArray>> =>
  loadBody(folder, withNewHead(configOf(name), numClasses));

/**
 * Name of a checkpoint, paths of the parameters missing for a new head, and prefix of the body. The checkpoints contain
 * a part of a pooler, no pooler, and a complete pooler.
 */
const classifiers: [name: string, head: RegExp, prefix: string][] = [
  ["vit", /^params\.classifier\./, "vit."],
  ["resnet-basic", /^params\.head\./, "resnet."],
  ["resnet-bottleneck", /^params\.head\./, "resnet."],
  ["bert-classes", /^params\.classifier\./, "bert."],
  ["bert-states", /^params\.classifier\./, ""],
  ["bert-tokens", /^params\.(classifier\.|pooler\.bias)/, "bert."],
];

describe.each(classifiers)("%s with a new head", (name, head, prefix) => {
  const config = withNewHead(configOf(name), numClasses);
  const { leaves } = modelLeaves(openConfig(config));

  test("keeps every weight of the body, and the model adds only the weights of the head", async () => {
    const kept = await body(checkpointFolder(name), name);
    const { params, state } = await loadPretrained(checkpointFolder(name));
    const before = leavesByPath<NdArray>({ params, state });
    // A pooler that the old model did not use was preserved in the file, but not loaded.
    for (const [path, array] of kept)
      if (!path.startsWith("params.pooler.")) expect(array, path).toEqual(before.get(path));
    expect([...kept.keys()].sort()).toEqual(
      leaves
        .map(({ path }) => path)
        .filter((path) => !head.test(path))
        .sort(),
    );
  });

  test("has the new number of classes, and its configuration does not mention the old classes", () => {
    const outer = leaves.filter(({ path }) => /^params\.(classifier|head)\./.test(path));
    expect(outer.map(({ shape }) => shape.at(-1))).toEqual([numClasses, numClasses]);
    expect(config).not.toHaveProperty("id2label");
    expect(withNewHead(config, numClasses)).toEqual(config);
  });

  test("is also created from a checkpoint of the body alone", async () => {
    const bare = changed(name, ([key, tensor]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), tensor]] : []));
    expect(await body(bare, name)).toEqual(await body(checkpointFolder(name), name));
  });

  test("reports every missing tensor of the body", async () => {
    const first = [...tensorsOf(checkpointFolder(name)).keys()].find(
      (key) => key.startsWith(prefix) && !key.includes("pooler"),
    )!;
    const damaged = changed(name, (entry) => (entry[0] === first ? [] : [entry]));
    await expect(body(damaged, name)).rejects.toThrow(/1 missing \(/);
  });
});

test("rejects a language model, which has no classification head", async () => {
  for (const name of ["gpt2", "llama-tied", "qwen2"]) {
    expect(() => withNewHead(configOf(name), 3)).toThrow(
      /which has no classification head; use a checkpoint of bert, resnet, vit/,
    );
    await expect(loadBody(checkpointFolder(name), configOf(name))).rejects.toThrow("has no classification head");
  }
});
