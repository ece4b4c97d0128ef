import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const { version } = JSON.parse(readFileSync(beside("../package.json"), "utf8")) as { readonly version: string };

/** Runs a command file under a Node that reports `nodeVersion` as its version. */
const launch = (
  bin: string,
  nodeVersion: string,
  ...args: string[]
): { code: number | null; stdout: string; stderr: string } => {
  const claim = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${nodeVersion}" } })`;
  const node = ["--import", `data:text/javascript,${encodeURIComponent(claim)}`, beside(bin)];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...node, ...args], { encoding: "utf8" });
  return { code: status, stdout, stderr };
};

test("the bin of a clone starts the source", () => {
  expect(launch("../bin/skein-train.js", "22.18.0", "--version")).toEqual({
    code: 0,
    stdout: `${version}\n`,
    stderr: "",
  });
});

test.each(["18.20.8", "20.20.2", "22.17.1"])("on Node %s, one line names what is missing", (nodeVersion) => {
  const { code, stdout, stderr } = launch("../bin/skein-train.js", nodeVersion, "--version");
  expect(stderr).toMatch(/^skein-train needs Node 22\.18 or later, but .* is [\d.]+; .*\n$/);
  expect(stderr).toContain(` is ${nodeVersion}; `);
  expect([code, stdout]).toEqual([2, ""]);
});

test("the bin of skein-profile has the same checks", () => {
  const { code, stderr } = launch("../../profiler/bin/skein-profile.js", "20.20.2", "--version");
  expect(stderr).toMatch(
    /^skein-profile needs Node 22\.18 or later, but .* is 20\.20\.2; start it by .* exec skein-profile, which .*\n$/,
  );
  expect(code).toBe(2);
});
