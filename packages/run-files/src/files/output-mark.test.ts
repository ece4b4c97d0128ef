import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Files, nodeFiles } from "@skein/cli/node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { leaveMark, removeMark, removeMarks, requireMark } from "./output-mark.ts";

let here: string;
let there: string;
beforeEach(() => {
  [here, there] = [mkdtempSync(join(tmpdir(), "skein-mark-")), mkdtempSync(join(tmpdir(), "skein-mark-"))];
});
afterEach(() => [here, there].forEach((folder) => rmSync(folder, { recursive: true })));

test("a process that shares the folder finds the mark, and leaves nothing", async () => {
  const mark = leaveMark(nodeFiles, here);
  await requireMark(nodeFiles, here, mark, [1]);
  removeMarks(nodeFiles, here);
  expect(readdirSync(here)).toEqual([]);
});

test("one that sees another folder of the same name is refused, even if that has a mark of its own", async () => {
  leaveMark(nodeFiles, there);
  await expect(requireMark(nodeFiles, there, leaveMark(nodeFiles, here), [2, 3])).rejects.toThrow(
    /--output .*: the process of rank 2, 3 on .* does not see the folder that the controller of the run has created; name a folder on a disk that all machines share/,
  );
});

test("a start that fails late, as after a pause, leaves the mark of the next one; a finished one removes all", async () => {
  const [paused, next] = [leaveMark(nodeFiles, here), leaveMark(nodeFiles, here)];
  removeMark(nodeFiles, here, paused);
  await requireMark(nodeFiles, here, next, [0]);
  expect(readdirSync(here)).toEqual([next]);
  leaveMark(nodeFiles, here); // the mark of a killed process
  removeMarks(nodeFiles, here);
  expect(readdirSync(here)).toEqual([]);
});

test("one without write permission is refused before the first step", async () => {
  const readOnly: Files = {
    ...nodeFiles,
    writeDurably: () => {
      throw new Error("EROFS");
    },
  };
  await expect(requireMark(readOnly, here, leaveMark(nodeFiles, here), [1])).rejects.toThrow("EROFS");
});
