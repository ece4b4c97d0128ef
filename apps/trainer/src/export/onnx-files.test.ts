import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Files, nodeFiles } from "@skein/cli/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { digestOf, replaceOnnxFiles, weightsName } from "./onnx-files.ts";

let folder: string;
let output: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-onnx-files-"));
  output = join(folder, "digits.onnx");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Returns a simulated ONNX export. The model text contains the export name `of` and the name of the weights file. */
const exported = (of: string, hasWeights = true) => {
  const weights = hasWeights ? [Buffer.from(`weights `), Buffer.from(`of ${of}`)] : [];
  const place = hasWeights ? weightsName("digits.onnx", digestOf(weights)) : "none";
  return { model: Buffer.from(`${of} ${place}`), weights };
};

/**
 * Returns the name of the export that wrote the model in the folder. Requires that the weights are from the same
 * export.
 */
const found = (): string => {
  const [of, place] = readFileSync(output, "utf8").split(" ");
  if (place !== "none") expect(readFileSync(join(folder, place!), "utf8")).toBe(`weights of ${of}`);
  return of!;
};

/** Returns file operations that fail at call number `at` and, for a crash, at all later calls. */
const failingAt = (at: number, isCrash: boolean): { readonly files: Files; readonly calls: () => number } => {
  let calls = 0;
  const counted = <Arguments extends unknown[], Result>(
    call: (...given: Arguments) => Result,
    before: (...given: Arguments) => void = () => {},
  ) => {
    return (...given: Arguments): Result => {
      const now = calls++;
      if (now === at) before(...given);
      if (now === at || (isCrash && now > at)) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      return call(...given);
    };
  };
  const { writeDurably, rename, remove, syncFolder } = nodeFiles;
  return {
    calls: () => calls,
    files: {
      ...nodeFiles,
      writeDurably: counted(writeDurably, (path, [first]) => writeFileSync(path, first!.subarray(0, 3))),
      rename: counted(rename),
      remove: counted(remove),
      syncFolder: counted(syncFolder),
    },
  };
};

describe.each([
  ["weights beside weights", exported("old"), exported("new")],
  ["weights beside none", exported("old", false), exported("new")],
  ["none beside weights", exported("old"), exported("new", false)],
  ["the same once more", exported("old"), exported("old")],
])("%s", (_, before, after) => {
  const own = after.model.toString().split(" ")[0]!;
  const namesOf = ({ model }: typeof after): string[] =>
    ["digits.onnx", model.toString().split(" ")[1]!].filter((name) => name !== "none").toSorted();

  test("law: after a crash at any point the model has its own weights, and the next export removes the remains", () => {
    for (let at = 0, all = Infinity; at < all; at++) {
      rmSync(folder, { recursive: true });
      nodeFiles.makeFolder(folder);
      writeFileSync(join(folder, "digits.onnx.data"), "somebody else's");
      replaceOnnxFiles(nodeFiles, output, before);
      const { files, calls } = failingAt(at, true);
      try {
        replaceOnnxFiles(files, output, after);
        all = Math.min(all, calls());
      } catch {
        expect(["old", own]).toContain(found());
      }
      expect(replaceOnnxFiles(nodeFiles, output, after)).toEqual(
        namesOf(after)
          .map((name) => join(folder, name))
          .toSorted(),
      );
      expect(found()).toBe(own);
      expect(readdirSync(folder).toSorted()).toEqual([...namesOf(after), "digits.onnx.data"].toSorted());
    }
  });

  test("law: after any single failure the model has its own weights", () => {
    for (let at = 0, all = Infinity; at < all; at++) {
      replaceOnnxFiles(nodeFiles, output, before);
      const { files, calls } = failingAt(at, false);
      try {
        replaceOnnxFiles(files, output, after);
        all = Math.min(all, calls());
      } catch {
        expect(["old", own]).toContain(found());
      }
    }
  });

  test("on a full disk the old files remain, without others", () => {
    replaceOnnxFiles(nodeFiles, output, before);
    const writes = after.weights.length > 0 ? [0, 3] : [0];
    for (const at of writes) {
      const { files } = failingAt(at, false);
      expect(() => replaceOnnxFiles(files, output, after)).toThrow(
        /^the disk of \S+digits\.onnx is full, so nothing was written \(ENOSPC\), and an earlier file is unchanged; free some/,
      );
      expect(found()).toBe("old");
      expect(readdirSync(folder).toSorted()).toEqual(namesOf(before));
    }
  });
});
