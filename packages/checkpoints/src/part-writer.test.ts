import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256 } from "@skein/cli/node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type SavedFile, temporaryFolder } from "./checkpoint-part.ts";
import { PartWriter, type PartsToWrite } from "./part-writer.ts";

let output: string;
let writer: PartWriter;
let written: [number, readonly SavedFile[]][];
beforeEach(() => {
  output = mkdtempSync(join(tmpdir(), "skein-parts-"));
  written = [];
  writer = new PartWriter((step, files) => written.push([step, files]));
});
afterEach(() => {
  writer.close();
  rmSync(output, { recursive: true });
});

const parts = (step: number, ...texts: string[]): PartsToWrite => ({
  output,
  step,
  parts: [{ name: "x.safetensors", content: texts.map((text) => new Uint8Array(Buffer.from(text))) }],
});

test("writes one checkpoint after the other, and takes over the memory", async () => {
  const first = parts(1, "head", "", "tensors");
  writer.begin(first);
  expect(first.parts[0]!.content[0]!.length).toBe(0);
  await writer.idle();
  writer.begin(parts(2, "more"));
  await writer.idle();
  expect(written).toEqual([
    [1, [{ name: "x.safetensors", bytes: 11, sha256: sha256("headtensors") }]],
    [2, [{ name: "x.safetensors", bytes: 4, sha256: sha256("more") }]],
  ]);
  expect(readFileSync(join(temporaryFolder(output, 1), "x.safetensors"), "utf8")).toBe("headtensors");
});

test("a busy thread learns of the result by looking", () => {
  writer.begin(parts(1, "all"));
  while (written.length === 0) writer.look();
  expect(written[0]![0]).toBe(1);
});

test("writes nothing for a rank without parts", () => {
  writer.begin({ output, step: 3, parts: [] });
  expect(written).toEqual([[3, []]]);
});

test("throws the disk's error at each look after it", async () => {
  writeFileSync(join(output, "checkpoints"), "no folder");
  writer.begin(parts(1, "x"));
  await expect(writer.idle()).rejects.toMatchObject({ code: "ENOTDIR" });
  expect(() => writer.look()).toThrow("ENOTDIR");
  expect(written).toEqual([]);
});
