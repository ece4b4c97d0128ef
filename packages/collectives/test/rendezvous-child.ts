import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RendezvousOptions } from "../src/rendezvous/coordinator-options.ts";
import type { Opened } from "./rendezvous-world.ts";
import type { JoinOptions } from "../src/rendezvous/member.ts";

/** A child process that takes part in a rendezvous. */
export interface Child {
  /** Returns the first group of `pattern` when the process has printed a match. */
  output(pattern: RegExp): Promise<string>;
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string }>;
  kill(signal?: NodeJS.Signals): void;
}

/** Role of a child, see rendezvous-process.ts. */
export type Task =
  /**
   * Hosts a rendezvous. `after`: stay until killed, exit, or block the main thread for a given time after all ranks
   * have joined, notify the other processes, and stay.
   */
  | { readonly host: RendezvousOptions; readonly after: "stay" | "forget" | Block }
  /** Joins a rendezvous. `after`: as for a host, or close and exit. */
  | { readonly join: JoinOptions; readonly after: "stay" | "leave" | "forget" | Block };

interface Block {
  readonly blockMilliseconds: number;
}

/** Starts a child process that ends at the latest when the test's resources are closed. */
export const startChild = (opened: Opened, task: Task): Child => {
  const file = fileURLToPath(new URL("./rendezvous-process.ts", import.meta.url));
  const child = spawn(process.execPath, [file, JSON.stringify(task)], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<{ code: number | null; stdout: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, stdout })),
  );
  opened.add(() => {
    child.kill("SIGKILL");
    return ended;
  });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (stdout += text));
  return {
    output: (pattern) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = pattern.exec(stdout);
          if (found !== null) resolve(found[1]!);
        };
        look();
        child.stdout.on("data", look);
      }),
    ended,
    kill: (signal = "SIGKILL") => void child.kill(signal),
  };
};
