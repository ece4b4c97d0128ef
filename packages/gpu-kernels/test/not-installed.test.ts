import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { installWebGpu } from "../src/node.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-webgpu-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the error of `openNodeGpu` in a process in which `hooks` resolve `webgpu`. */
const thrown = (resolved: string): string => {
  const hooks = `import { registerHooks } from "node:module";
    registerHooks({ resolve: (name, context, next) => (name === "webgpu" ? ${resolved} : next(name, context)) });
    const { openNodeGpu } = await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../src/node.ts")).href)});
    await openNodeGpu().catch((error) => console.log(error.constructor.name, error.code, error.message));`;
  return spawnSync(process.execPath, ["--input-type=module"], { input: hooks, encoding: "utf8", cwd: folder }).stdout;
};

test("reports the install command for the missing package, with the versions of our optional peer", () => {
  expect(installWebGpu).toBe(`npm install "webgpu@${manifest.peerDependencies.webgpu}"`);
  expect(
    thrown(`next("webgpu", { ...context, parentURL: ${JSON.stringify(pathToFileURL(join(folder, "a.js")).href)} })`),
  ).toBe(
    `WebGpuNotInstalledError adapter WebGPU in Node needs the package webgpu, which is not installed; install it with: ${installWebGpu}\n`,
  );
});

test("reports why an installed package does not start", () => {
  mkdirSync(join(folder, "broken"));
  const broken = join(folder, "broken/index.mjs");
  writeFileSync(broken, `import "./dist/dawn.node.js";`);
  expect(thrown(`({ url: ${JSON.stringify(pathToFileURL(broken).href)}, shortCircuit: true })`)).toMatch(
    /^AdapterError adapter the package webgpu is installed but does not start \(Cannot find module .*dawn\.node\.js.*install it again/,
  );
});
