import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { examples } from "@skein/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jobFolder, skeinTrain } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

interface Found {
  readonly suggestion: { readonly rate: number; readonly least: number };
  readonly points: readonly { readonly rate: number; readonly loss: number }[];
}

test("a range test suggests a learning rate below that with the least loss, on threads and processes, and leaves the job file unchanged", async () => {
  const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("skein-find-rate-"));
  const before = left();
  const found: Found[] = [];
  for (const transport of ["threads", "tcp"].slice(0, examples(1, 2))) {
    const { code, stdout } = await skeinTrain(
      folder,
      "find-rate",
      "job.yaml",
      "--steps",
      "60",
      "--output",
      "rates.json",
      "--transport",
      transport,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nsuggested {2}--set learningRate\.peak=0\.00\d+\nderived /);
    expect(readdirSync(folder).sort()).toEqual(["job.yaml", "rates.json"]);
    found.push(JSON.parse(readFileSync(join(folder, "rates.json"), "utf8")) as Found);
  }
  const [{ points, suggestion }] = found as [Found];
  for (const other of found) expect(other).toEqual(found[0]);
  expect(left()).toEqual(before);
  expect(points[0]!.rate).toBe(1e-6);
  const factors = points.slice(1).map(({ rate }, i) => rate / points[i]!.rate);
  for (const factor of factors) expect(factor).toBeCloseTo(10 ** (6 / 59), 9);
  expect(suggestion.rate).toBeLessThanOrEqual(suggestion.least / 10);
  expect(suggestion.rate).toBeGreaterThan(1e-4);
});

test("a line reports that no learning rate lowers the loss, and invalid ranges are refused", async () => {
  const tiny = ["--set", "optimizer={kind: sgd}", "--from", "1e-12", "--to", "1e-11", "--steps", "20"];
  const none = await skeinTrain(folder, "find-rate", "job.yaml", "--ranks", "1", ...tiny);
  expect(none.stderr).toContain("no rate can be suggested: over 20 steps from 1e-12 on, the loss did not decrease");
  expect(none.code).toBe(2);
  const { stderr, code } = await skeinTrain(
    folder,
    "find-rate",
    "job.yaml",
    "--from",
    "1",
    "--to",
    "1",
    "--output",
    "x",
  );
  expect(stderr).toBe("--from 1 --to 1: the rate increases, so --from must be smaller; swap them\n");
  expect(code).toBe(2);
  expect(existsSync(join(folder, "x"))).toBe(false);
});
