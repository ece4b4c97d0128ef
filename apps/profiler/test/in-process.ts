import { vi } from "vitest";
import { main } from "../src/command-line.ts";

/** Exit code and output of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command that starts no ranks in this process, because starting a new process takes a second. */
export const inProcess = async (...args: string[]): Promise<CommandResult> => {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  try {
    return { code: await main(args), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
};
