import { expect, test } from "vitest";
import { run } from "./check.ts";

const node = (program: string): string[] => [process.execPath, "--eval", program];

test("what a command writes to either stream comes back in order, with its code", async () => {
  const program = `console.log("first"); setTimeout(() => { console.error("second"); process.exitCode = 3; }, 100)`;
  expect(await run(node(program))).toEqual({ code: 3, output: "first\nsecond\n" });
});

test("a command gets its input, or none", async () => {
  const echo = "process.stdin.pipe(process.stdout)";
  expect(await run(node(echo), { input: "said" })).toEqual({ code: 0, output: "said" });
  expect(await run(node(echo))).toEqual({ code: 0, output: "" });
});

test("a command that does not exist, or is killed, has failed", async () => {
  expect(await run(["no-such-command"])).toMatchObject({ code: 1, output: expect.stringContaining("ENOENT") });
  expect(await run(node(`process.kill(process.pid, "SIGKILL")`))).toMatchObject({ code: 1, output: expect.stringContaining("SIGKILL") });
});

test("a time-out ends what the command has started, too", async () => {
  // The grandchild holds the pipe: who ends the child alone waits a minute for it.
  const program = `require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" }); setInterval(() => {}, 1000)`;
  expect(await run(node(program), { seconds: 1 })).toEqual({ code: 124, output: "\nstill running after 1 s" });
}, 30_000);
