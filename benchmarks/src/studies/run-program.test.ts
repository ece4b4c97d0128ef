import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { Interrupted, runProgram } from "./run-program.ts";

const node = (program: string): string[] => [process.execPath, "--eval", program];

test("a program tells its code and what it wrote to each stream, in its folder", async () => {
  const program = `console.log(process.cwd()); console.error("no"); process.exitCode = 3`;
  expect(await runProgram(node(program), tmpdir(), 1)).toEqual({
    code: 3,
    stdout: `${tmpdir()}\n`,
    stderr: "no\n",
    tooLong: false,
  });
});

test("one that takes too long is told to end", async () => {
  expect(await runProgram(node("setInterval(() => {}, 1000)"), tmpdir(), 1 / 60)).toMatchObject({
    code: null,
    tooLong: true,
  });
});

test("who is interrupted ends it, and says so when it has ended", async () => {
  const listening = process.listenerCount("SIGINT");
  const running = runProgram(node("setInterval(() => {}, 1000)"), tmpdir(), 1);
  process.emit("SIGINT");
  await expect(running).rejects.toThrow(Interrupted);
  expect(process.listenerCount("SIGINT")).toBe(listening);
});

test("one that does not exist is an error", async () => {
  await expect(runProgram(["no-such-program"], tmpdir(), 1)).rejects.toThrow(/ENOENT/);
});
