#!/usr/bin/env node
// Plain JavaScript, so that an old Node comes as far as the line that says what it lacks. It starts the source where that is, in a clone of the
// repository, and what was built of it in an installed package. `package.json` beside it is what the root depends on, for `pnpm exec skein-train`: turbo counts
// packages of the workspace that the root depends on among the inputs of every task, and each change to any of them would have WebAssembly built again.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const beside = (path) => fileURLToPath(new URL(path, import.meta.url));
const inRepository = existsSync(beside("../src/main.ts"));
const viaPnpm = "npx --yes pnpm@12.21.0";

const versionFault = () => {
  const { engines } = JSON.parse(readFileSync(beside("../package.json"), "utf8"));
  const [, major, minor] = /(\d+)\.(\d+)/.exec(engines.node).map(Number);
  const [ownMajor, ownMinor] = process.versions.node.split(".").map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return undefined;
  const cure = inRepository
    ? `start it by ${viaPnpm} exec skein-train, which brings its own`
    : "install a newer one, as from https://nodejs.org";
  return `skein-train needs Node ${major}.${minor} or later, but ${process.execPath} is ${process.versions.node}; ${cure}`;
};

const buildFault = () => {
  if (!inRepository) return undefined;
  const built = ["cpu-kernels", "collectives"].every((name) => existsSync(beside(`../../../packages/${name}/src/generated`)));
  return built ? undefined : `the WebAssembly of this repository is not built yet; build it, once, with: ${viaPnpm} build:wasm`;
};

const fault = versionFault() || buildFault();
if (fault === undefined) await import(inRepository ? "../src/main.ts" : "../dist/main.js");
else {
  process.stderr.write(`${fault}\n`);
  process.exitCode = 2;
}
