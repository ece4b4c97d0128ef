import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { soundRun } from "./attacked-run.ts";
import { formatOutcome, runAttack } from "./run-attack.ts";
import { attacks } from "./table.ts";

// Usage: pnpm test:attack [names] [--tries <count>] [--seed <text>]
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { tries: { type: "string" }, seed: { type: "string" } },
});
const unknown = positionals.filter((name) => !attacks.some((attack) => attack.name === name));
const tries = values.tries === undefined ? undefined : Number(values.tries);
if (unknown.length > 0 || (tries !== undefined && !(Number.isSafeInteger(tries) && tries > 0))) {
  console.error(
    `use: pnpm test:attack [names] [--tries <count>] [--seed <text>]; attacks are ${attacks.map(({ name }) => name).join(", ")}`,
  );
  process.exit(2);
}
const seed = values.seed ?? randomBytes(4).toString("hex");
console.log(`seed ${seed}`);
let harm = 0;
const sound = soundRun();
process.once("exit", () => sound.remove());
for (const attack of attacks.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  console.log(`\n── ${attack.what}`);
  const outcome = await runAttack(attack, tries ?? attack.tries, seed, sound);
  console.log(formatOutcome(attack, outcome));
  harm += outcome.fallen.length;
}
process.exitCode = harm === 0 ? 0 : 1;
