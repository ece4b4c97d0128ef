import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseHardwareFile } from "@skein/cost-model/files";
import { expect, onTestFinished, test } from "vitest";

const path = (from: string): string => fileURLToPath(new URL(from, import.meta.url));

test("measures links between a job's ranks, and writes them into a hardware file", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-links-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const job = path("../../trainer/jobs/mnist.yaml");
  const words = [
    "links",
    job,
    "--ranks",
    "2",
    "--transport",
    "tcp",
    "--hardware",
    "laptop-cpu",
    "--output",
    "linked.json",
  ];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--no-memory-protection-keys", path("../src/main.ts"), ...words],
    {
      cwd: folder,
      encoding: "utf8",
    },
  );
  expect([status, stderr.match(/^\s+at /m)]).toEqual([0, null]);
  expect(stdout).toMatch(/^2 ranks over tcp, /);
  expect(stderr).toMatch(/linked\.json; its links across hosts are unchanged, .*; use it with \S.* predict /);
  const { links } = parseHardwareFile(readFileSync(join(folder, "linked.json"), "utf8"), "linked.json");
  expect(links.source).toMatch(/^measured by skein-profile links on .* over tcp; /);
  expect(links.within.secondsPerByte).toBeGreaterThan(0);
});
