import { vi } from "vitest";
import { main } from "../src/command-line.ts";

/** How a command ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Run a command in this process, for what starts no ranks: one of its own takes a second to load. */
export const inProcess = async (...args: string[]): Promise<Ended> => {
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
