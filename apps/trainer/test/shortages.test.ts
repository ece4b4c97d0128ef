import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jobFolder, startWith } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const expectOneLine = async (handles: number, transport: string): Promise<void> => {
  const { code, stderr } = await startWith(
    { launcher: ["bash", "-c", `ulimit -n ${handles}; exec "$@"`, "bash"] },
    folder,
    "run",
    "job.yaml",
    "--output",
    "run",
    "--transport",
    transport,
  ).ended;
  expect(stderr.match(/^\s+at .*/m)).toBeNull();
  if (code === 0) return expect(existsSync(join(folder, "run/summary.json"))).toBe(true);
  expect(code).toBe(1);
  expect(stderr.trimEnd().split("\n").at(-1)).toMatch(
    /^(rank \d: )?no file handle is left \(.*\); raise .*: ulimit -n/,
  );
};

test("a run with 40 file handles ends with one line, and its remedy", () => expectOneLine(40, "threads"));
test.each([24, 28, 32, 36, 44, 48, 52, 56, 64].flatMap((n) => ["threads", "tcp", "tls"].map((t) => [n, t] as const)))(
  "a run with %i file handles over %s ends with one line, or trains to its end",
  { tags: "full" },
  expectOneLine,
);
