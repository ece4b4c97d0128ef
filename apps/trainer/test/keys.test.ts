import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkpointNames, childrenOf, jobFolder, startWith, until } from "./cli.ts";

const { folder, remove } = jobFolder();
afterAll(remove);

/** Returns the files below a folder that contain a private key. */
const filesWithKeys = (below: string): string[] =>
  readdirSync(below, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path, "latin1").includes("PRIVATE KEY"));

test.runIf(process.platform === "linux")(
  "a host that is killed leaves no key behind, and each process has only its own",
  { tags: "full" },
  async () => {
    const temporary = join(folder, "tmp");
    mkdirSync(temporary);
    const running = startWith(
      { env: { TMPDIR: temporary } },
      folder,
      "run",
      "job.yaml",
      "--transport",
      "tls",
      "--output",
      "run",
      "--steps",
      "5000",
    );
    await until(running, () => checkpointNames(join(folder, "run")).length > 0);
    const members = childrenOf(running.child.pid!);
    const keys = members.map((pid) =>
      [...readFileSync(`/proc/${pid}/environ`, "utf8").matchAll(/BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END/g)].map(
        ([, key]) => key,
      ),
    );
    expect(keys.map((own) => own.length)).toEqual([1, 1]);
    expect(new Set(keys.flat()).size).toBe(2);
    running.child.kill("SIGKILL");
    await running.ended;
    expect(filesWithKeys(folder)).toEqual([]);
    // the members notice that the host has ended
    await expect.poll(() => members.filter((pid) => isAlive(pid)), { timeout: 60_000 }).toEqual([]);
  },
);

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
