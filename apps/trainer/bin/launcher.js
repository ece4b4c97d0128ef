// Plain JavaScript, so that an old Node reaches the line that reports what is missing.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const viaPnpm = "npx --yes pnpm@12.21.0";

const versionFault = (name, beside, inRepository) => {
  const { engines } = JSON.parse(readFileSync(beside("../package.json"), "utf8"));
  const [, major, minor] = /(\d+)\.(\d+)/.exec(engines.node).map(Number);
  const [ownMajor, ownMinor] = process.versions.node.split(".").map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return undefined;
  const cure = inRepository
    ? `start it by ${viaPnpm} exec ${name}, which brings its own`
    : "install a newer one, as from https://nodejs.org";
  return `${name} needs Node ${major}.${minor} or later, but ${process.execPath} is ${process.versions.node}; ${cure}`;
};

const buildFault = (beside) => {
  const built = ["cpu-kernels", "collectives"].every((name) =>
    existsSync(beside(`../../../packages/${name}/src/generated`)),
  );
  return built
    ? undefined
    : `the WebAssembly of this repository is not built yet; build it, once, with: ${viaPnpm} build:wasm`;
};

export const launch = async (name, from) => {
  const beside = (path) => fileURLToPath(new URL(path, from));
  const inRepository = existsSync(beside("../src/main.ts"));
  const fault = versionFault(name, beside, inRepository) || (inRepository ? buildFault(beside) : undefined);
  if (fault === undefined) await import(new URL(inRepository ? "../src/main.ts" : "../dist/main.js", from).href);
  else {
    process.stderr.write(`${fault}\n`);
    process.exitCode = 2;
  }
};
