import { availableParallelism } from "node:os";
import { type Check, commandCheck } from "./check.ts";
import { skipCounts } from "./skip-counts.ts";
import { docExamplesStage } from "./stages/doc-examples.ts";
import { examplesStage, readmeStage } from "./stages/examples.ts";
import { guidesStage } from "./stages/guides.ts";
import { packagesStage } from "./stages/packages.ts";
import { fullOnlyFiles, vitestStage } from "./stages/vitest.ts";

interface Stage {
  readonly name: string;
  /**
   * Runs the stage and returns its checks.
   *
   * @param passed Returns whether a stage has run without failures.
   */
  run(passed: (stage: string) => boolean): Promise<Check[]>;
}

const command = (name: string, line: string, seconds: number): Stage => ({
  name,
  run: async () => [await commandCheck(name, line.split(" "), { seconds })],
});

// `node tooling/test.ts types lint` runs only the named stages. `--full` includes the tests that the default run skips.
const full = process.argv.includes("--full");
const wanted = process.argv.slice(2).filter((word) => word !== "--full");

// Rows run one after the other. The stages of a row run in parallel, up to the number of cores, because most tools use
// one core.
const order: readonly (readonly Stage[])[] = [
  [
    command("WebAssembly build", "turbo run build:wasm --output-logs=errors-only", 300),
    command("lint", "oxlint --deny-warnings", 120),
    command("format", "biome format .", 120),
  ],
  [
    command("build", "turbo run build --output-logs=errors-only", 600),
    command("types", "tsc --noEmit -p tsconfig.json", 300),
    command(
      "import graph",
      "depcruise --config tooling/dependency-cruiser.cjs packages apps benchmarks examples tooling",
      120,
    ),
    command("folder graph", "node tooling/folder-cycles.ts", 60),
    command("dead code and dependencies", "knip --no-config-hints", 120),
    command("site", "node tooling/site.ts", 240),
  ],
  [{ name: "tests", run: (passed) => vitestStage({ full, built: passed("build") }) }],
  [
    { name: "README examples", run: (passed) => readmeStage(passed("build")) },
    { name: "doc comment examples", run: (passed) => docExamplesStage(passed("build")) },
    { name: "guides", run: (passed) => guidesStage({ full, built: passed("build") }) },
    { name: "examples", run: (passed) => examplesStage(passed("build")) },
    { name: "packages", run: () => packagesStage(full) },
  ],
];

const outcomes = new Map<string, boolean>();

const formatCheck = ({ name, status, detail }: Check): string =>
  `${status}: ${name}${detail ? `\n${detail.replace(/^/gm, "    ")}` : ""}`;

/**
 * Runs a stage, prints its title and result, and returns its checks.
 *
 * @param alone Whether the title can be printed at the start, because no other stage writes to the terminal at the same
 *   time.
 */
const runStage = async ({ name, run }: Stage, alone: boolean): Promise<readonly Check[]> => {
  const title = `\n── ${name}`;
  if (alone) console.log(title);
  const start = performance.now();
  const checks = await run((stage) => outcomes.get(stage) === true).catch((error: unknown): Check[] => [
    { name, status: "failed", detail: error instanceof Error ? (error.stack ?? error.message) : String(error) },
  ]);
  const counted: readonly Check[] =
    checks.length > 0 ? checks : [{ name, status: "failed", detail: "this stage ran nothing" }];
  if (!alone) console.log(title);
  for (const check of counted) if (check.status === "failed") console.log(formatCheck(check));
  for (const line of skipCounts(counted)) console.log(line);
  outcomes.set(
    name,
    counted.every(({ status }) => status !== "failed"),
  );
  console.log(`   ${counted.length} checked in ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return counted;
};

const stages = order.flat();
const chosen = wanted.length === 0 ? stages : stages.filter(({ name }) => wanted.includes(name));
if (chosen.length < Math.max(wanted.length, 1)) {
  console.error(
    `there is no stage ${wanted.filter((name) => !stages.some((stage) => stage.name === name)).join(", ")}; stages are ${stages.map(({ name }) => name).join(", ")}`,
  );
  process.exit(2);
}

const checks: Check[] = [];
for (const line of order) {
  const waiting = line.filter((stage) => chosen.includes(stage));
  const alone = waiting.length === 1;
  const runWaiting = async (): Promise<void> => {
    for (let stage = waiting.shift(); stage !== undefined; stage = waiting.shift())
      checks.push(...(await runStage(stage, alone)));
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runWaiting));
}
const left = full || !chosen.some(({ name }) => name === "tests") ? [] : fullOnlyFiles();
if (left.length > 0) {
  console.log(
    `\nnot run, except by "pnpm test:full" before a release: tests tagged "full", and ${left.length} files\n${left.map((file) => `  ${file}`).join("\n")}`,
  );
}
// Failures are repeated at the end, where readers of a long log look first.
const failed = checks.filter(({ status }) => status === "failed");
if (failed.length > 0) console.log(`\nfailures:\n${failed.map(formatCheck).join("\n")}`);
const count = (status: Check["status"]): number => checks.filter((check) => check.status === status).length;
console.log(`\n${count("passed")} passed, ${failed.length} failed, ${count("skipped")} skipped`);
process.exitCode = failed.length === 0 ? 0 : 1;
