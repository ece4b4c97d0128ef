import { spawn } from "node:child_process";
import { once } from "node:events";
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
  expect(await run(node(`process.kill(process.pid, "SIGKILL")`))).toMatchObject({
    code: 1,
    output: expect.stringContaining("SIGKILL"),
  });
});

test("a time-out ends what the command has started, too", async () => {
  // The grandchild holds the pipe: who ends the child alone waits a minute for it.
  const program = `require("node:child_process").spawn("sleep", ["60"], { stdio: "inherit" }); setInterval(() => {}, 1000)`;
  expect(await run(node(program), { seconds: 1 })).toEqual({ code: 124, output: "\nstill running after 1 s" });
}, 30_000);

test("who is told to end ends what it runs", async () => {
  // `show` lends the pipe on: it closes when the command has ended, a minute later where nobody ends it.
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
