import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { run } from "./check.ts";

const node = (program: string): string[] => [process.execPath, "--eval", program];

test("returns the output of both streams in order, and the exit code", async () => {
  const program = `console.log("first"); setTimeout(() => { console.error("second"); process.exitCode = 3; }, 100)`;
  expect(await run(node(program))).toEqual({ code: 3, output: "first\nsecond\n" });
});

test("passes the input to a command, if there is one", async () => {
  const echo = "process.stdin.pipe(process.stdout)";
  expect(await run(node(echo), { input: "text" })).toEqual({ code: 0, output: "text" });
  expect(await run(node(echo))).toEqual({ code: 0, output: "" });
});

test("fails for a command that does not exist or is killed", async () => {
  expect(await run(["no-such-command"])).toMatchObject({ code: 1, output: expect.stringContaining("ENOENT") });
  expect(await run(node(`process.kill(process.pid, "SIGKILL")`))).toMatchObject({
    code: 1,
    output: expect.stringContaining("SIGKILL"),
  });
});

test("ends the command's child processes on a timeout", async () => {
  // The grandchild keeps the pipe open. If only the child were ended, the test would wait a minute until the pipe
  // closes.
  const program = `require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" }); setInterval(() => {}, 1000)`;
  expect(await run(node(program), { seconds: 1 })).toEqual({ code: 124, output: "\nstill running after 1 s" });
}, 30_000);

test("ends the running command when the process is asked to end", async () => {
  // With `show`, the command inherits the pipe, which closes when the command ends: after a minute, unless it is ended.
  const check = new URL("check.ts", import.meta.url).href;
  const command = node(`console.log("begun"); setTimeout(() => {}, 60_000)`);
  const program = `import { run } from ${JSON.stringify(check)}; await run(${JSON.stringify(command)}, { show: true })`;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  parent.stdout.once("data", () => parent.kill("SIGINT"));
  const [code, signal] = await once(parent, "close");
  expect([code, signal]).toEqual([null, "SIGINT"]);
}, 30_000);
