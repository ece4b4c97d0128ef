import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { ContestantProcess } from "./contestant-process.ts";
import type { ContestantReply } from "./protocol.ts";

/**
 * Starts an implementation as a child process. Lines that start with "@" are replies; other output of a library is
 * dropped.
 */
export const startContestant = (
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): ContestantProcess => {
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let complaints = "";
  let waiting: ((reply: ContestantReply) => void) | undefined;
  let ended: string | undefined;
  const finish = (reply: ContestantReply): void => {
    const resolve = waiting;
    waiting = undefined;
    resolve?.(reply);
  };
  const end = (reason: string): void => {
    ended ??= reason;
    finish({ ok: false, error: ended });
  };
  child.stderr.on("data", (chunk: Buffer) => (complaints = (complaints + chunk.toString()).slice(-2000)));
  child.stdin.on("error", () => end("its input is closed"));
  child.on("error", (error) => end(error.message));
  child.on("close", (code) =>
    end(
      `ended with code ${code}: ${complaints.split("\n").find((line) => line.includes("Error")) ?? complaints.trim()}`,
    ),
  );
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line.startsWith("@")) finish(JSON.parse(line.slice(1)));
  });
  return {
    name,
    ask: (request) =>
      new Promise((resolve) => {
        if (ended !== undefined) return resolve({ ok: false, error: ended });
        waiting = resolve;
        child.stdin.write(`${JSON.stringify(request)}\n`);
      }),
    close: () => void child.stdin.end(),
  };
};
