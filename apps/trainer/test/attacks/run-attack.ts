import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Attack, Outcome } from "./attack.ts";
import type { SoundRun } from "./attacked-run.ts";

/** Runs an attack in its own folder. */
export const runAttack = async (attack: Attack, count: number, seed: string, sound: SoundRun): Promise<Outcome> => {
  const folder = mkdtempSync(join(tmpdir(), `skein-attack-${attack.name}-`));
  try {
    return await attack.run({ count, seed, folder, sound });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Formats one line of counts, and one line per harmful attempt. */
export const formatOutcome = ({ name }: Attack, { counts, fallen }: Outcome): string => {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const parts = Object.entries(counts).map(([what, count]) => `${what} ${count}`);
  return [
    `${name}: ${total - fallen.length} of ${total} held (${parts.join(", ")})`,
    ...fallen.slice(0, 20).map((line) => `  fell: ${line}`),
  ].join("\n");
};
