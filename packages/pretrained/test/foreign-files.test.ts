import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadImageProcessor, loadPretrained } from "../src/node.ts";
import { checkpointFolder } from "./checkpoints.ts";

const base = mkdtempSync(join(tmpdir(), "skein-foreign-"));
afterAll(() => rmSync(base, { recursive: true }));
/** Path of a named pipe without a writer. */
const pipe = join(base, "pipe");
beforeAll(() => {
  if (process.platform === "linux") execFileSync("mkfifo", [pipe]);
});

let numFolders = 0;

/** Returns the error message for a checkpoint in which one file is replaced. */
const refusal = async (name: string, checkpoint: string, put: (path: string) => void): Promise<string> => {
  const folder = join(base, String(numFolders++));
  cpSync(checkpointFolder(checkpoint), folder, { recursive: true });
  rmSync(join(folder, name), { force: true });
  put(join(folder, name));
  const isProcessor = name.includes("processor");
  const work = isProcessor ? loadImageProcessor(folder, "vit") : loadPretrained(folder);
  const error = await work.then(
    () => new Error(`${name} is read`),
    (cause: Error) => cause,
  );
  expect(error.name, String(error)).toBe("PretrainedError");
  expect(error.message).not.toContain("\n");
  return error.message;
};

describe.each([
  ["config.json", "vit"],
  ["model.safetensors", "vit"],
  ["model.safetensors.index.json", "llama-grouped"],
  ["model-00002-of-00003.safetensors", "llama-grouped"],
  ["preprocessor_config.json", "vit"],
  ["processor_config.json", "vit"],
] as const)("%s", (name, checkpoint) => {
  test.runIf(process.platform === "linux")("does not wait for a pipe, and does not read a device", async () => {
    for (const what of [pipe, "/dev/zero"])
      expect(await refusal(name, checkpoint, (path) => symlinkSync(what, path))).toMatch(
        new RegExp(`${name.replaceAll(".", "\\.")} is (no|not a) regular file; `),
      );
  });

  test.each([
    [
      "a pointer of Git LFS",
      "version https://git-lfs.github.com/spec/v1\noid sha256:74541f\nsize 1302138752\n",
      "is a pointer of Git LFS, not the file: run git lfs pull",
    ],
    ["a page of HTML", "<!doctype html><html>", "is an HTML page, not "],
    ["a zip archive", "PK\x03\x04\x14\0\x08\0", "is a zip archive, as .npz and PyTorch's files are, not "],
    ["a pickle", "\x80\x02]q\0.", "is a Python pickle, which runs code when it is read, not "],
    ["a GGUF file", "GGUF\x03\0\0\0", "is a GGUF file, of llama.cpp, not "],
  ])("reports that a file is %s", async (_, text, message) => {
    expect(await refusal(name, checkpoint, (path) => writeFileSync(path, text, "latin1"))).toContain(
      `${name} ${message}`,
    );
  });
});

test("rejects a configuration in another encoding by the position of its byte, and accepts a byte-order mark", async () => {
  const folder = checkpointFolder("vit");
  const { config } = await loadPretrained(folder);
  expect(
    await refusal("config.json", "vit", (path) => writeFileSync(path, Buffer.from('{"a": "\u00e9"}', "latin1"))),
  ).toMatch(/config\.json is not UTF-8: byte 7 begins no character/);
  const marked = join(base, "marked");
  cpSync(folder, marked, { recursive: true });
  writeFileSync(join(marked, "config.json"), `\uFEFF${JSON.stringify(config)}`);
  expect((await loadPretrained(marked)).config).toEqual(config);
});
