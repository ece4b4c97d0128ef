import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { benchAllReduce } from "./all-reduce/bench-all-reduce.ts";
import { blasProblems, browserProblems, coreProblems, gpuProblems, problems } from "./problems/table.ts";
import { convergence } from "./convergence/convergence.ts";
import { search } from "./convergence/search.ts";
import { benchImages } from "./images/bench-images.ts";
import { kfacStages } from "./kfac-stages/kfac-stages.ts";
import { largeBatch } from "./large-batch/large-batch.ts";
import { largeBatchSearch } from "./large-batch/search.ts";
import { moeLayerTimes } from "./moe/layer.ts";
import { moeStepTimes } from "./moe/step.ts";
import { moeQuality } from "./moe/quality.ts";
import { moeSearch } from "./moe/search.ts";
import { ownSteps } from "./own-steps/own-steps.ts";
import { formatPage, machine } from "./report/page.ts";
import type { Plot } from "./report/plot.ts";
import { writePlots } from "./report/write-plots.ts";
import type { Row } from "./report/row.ts";
import { formatTable, shortfalls } from "./report/table.ts";
import { predictions } from "./predictions/predictions.ts";
import { runStudy } from "./studies/run-study.ts";
import { secondOrder } from "./second-order/second-order.ts";
import { secondOrderSearch } from "./second-order/search.ts";
import { secondOrderLinks } from "./second-order/links.ts";
import { secondOrderTimes } from "./second-order/times.ts";
import { slowLinks } from "./slow-links/slow-links.ts";
import { benchInChromium } from "./suites/browser.ts";
import { benchCodec } from "./suites/codec.ts";
import { onBlas, onTwoThreads, processes } from "./suites/contestants.ts";
import { benchKernelFamily, benchOnGpu, kernelFamilies } from "./suites/gpu.ts";
import { benchGrouped } from "./suites/grouped.ts";
import { benchMemory } from "./suites/memory.ts";
import { benchProblem } from "./suites/steps.ts";

interface SuiteContext {
  /** Temporary folder of the benchmark run, removed at the end of the run. */
  readonly folder: string;
  /** Versions of all libraries that the suites have measured. Suites add their libraries. */
  readonly versions: Record<string, string>;
  /** Plots for the page. Suites add their plots. */
  readonly plots: Plot[];
  /** Whether to check only that suites run, without accurate times. Some suites ignore this option. */
  readonly quick: boolean;
}

type Suite = (context: SuiteContext) => Promise<Row[]>;

const problemSuite =
  (name: string): Suite =>
  ({ folder, versions }) =>
    benchProblem(problems[name]!, folder, versions, processes);

const allReduceSuite =
  (ranks: number): Suite =>
  async ({ folder, versions, plots, quick }) => {
    const { rows, plot, versions: peers } = await benchAllReduce(ranks, folder, quick);
    Object.assign(versions, peers);
    plots.push(plot);
    return [...rows];
  };

const suites: Readonly<Record<string, Suite>> = Object.fromEntries([
  ...coreProblems.map((name) => [name, problemSuite(name)]),
  ...blasProblems.map((name) => [
    `blas-${name}`,
    ({ folder, versions }: SuiteContext) => benchProblem(problems[name]!, folder, versions, onBlas),
  ]),
  ...blasProblems.flatMap((name) =>
    (["skein", "skein-blas"] as const).map((ours) => [
      `threads-${ours === "skein" ? "" : "blas-"}${name}`,
      ({ folder, versions }: SuiteContext) => benchProblem(problems[name]!, folder, versions, onTwoThreads(ours)),
    ]),
  ),
  ...[2, 4].map((ranks) => [`all-reduce-${ranks}`, allReduceSuite(ranks)]),
  ["codec", () => benchCodec()],
  ["grouped", () => benchGrouped()],
  ["images", ({ folder, versions, quick }: SuiteContext) => benchImages(folder, versions, quick)],
  ["memory", ({ folder }: SuiteContext) => benchMemory(folder)],
  ...browserProblems.map((name) => [
    `webgpu-${name}`,
    ({ folder, versions }: SuiteContext) => benchInChromium(folder, versions, [name]),
  ]),
  ...kernelFamilies.map((family) => [
    `kernels-${family}`,
    ({ versions }: SuiteContext) => benchKernelFamily(family, versions),
  ]),
  ...gpuProblems.map((name) => [
    `gpu-${name}`,
    ({ folder, versions }: SuiteContext) => benchOnGpu(name, folder, versions),
  ]),
]);

/**
 * Functions that run a study, by command name. Studies run only if their name is given, and have separate options. A
 * study trains for hours, or writes a page without measurements.
 */
const studies: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  search: (args) => runStudy(search, args),
  convergence: (args) => runStudy(convergence, args),
  "slow-links": (args) => runStudy(slowLinks, args),
  "second-order": (args) => runStudy(secondOrder, args),
  "second-order-search": (args) => runStudy(secondOrderSearch, args),
  "second-order-times": (args) => runStudy(secondOrderTimes, args),
  "second-order-links": (args) => runStudy(secondOrderLinks, args),
  "large-batch-search": (args) => runStudy(largeBatchSearch, args),
  "large-batch": (args) => runStudy(largeBatch, args),
  "moe-layer": (args) => runStudy(moeLayerTimes, args),
  "moe-step": (args) => runStudy(moeStepTimes, args),
  "moe-search": (args) => runStudy(moeSearch, args),
  "moe-quality": (args) => runStudy(moeQuality, args),
  predictions: async (args) => predictions(args),
  "kfac-stages": async (args) => kfacStages(args),
  "own-steps": ownSteps,
};
const [first = "", ...rest] = process.argv.slice(2);
if (first in studies) process.exit(await studies[first]!(rest));

const usage = `Measure ours beside its peers, on this machine, in one run.

  pnpm bench [--only NAME,NAME] [--quick] [--json FILE] [--page FILE [--title TITLE]]
  pnpm bench ${Object.keys(studies).join("|")} --help

  --only   which benchmarks: ${Object.keys(suites).join(", ")}
  --quick  a few samples of all-reduces and images only: whether all run and agree, not how fast they are
  --json   also write the rows as JSON: benchmark, unit, ours, peer, peerValue, ratio, …
  --page   also write a dated page, e.g. docs/benchmarks/${new Date().toISOString().slice(0, 10)}-core.md, with its plots beside it`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    page: { type: "string" },
    title: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
// A name selects every benchmark whose name begins with it, such as `webgpu`.
const names =
  values.only?.split(",").flatMap((wanted) => {
    const family = Object.keys(suites).filter((name) => name === wanted || name.startsWith(`${wanted}-`));
    return family.length > 0 ? family : [wanted];
  }) ?? Object.keys(suites);
const unknown = names.filter((name) => !(name in suites));
if (unknown.length > 0) {
  console.error(`there is no benchmark ${unknown.join(", ")}; there are ${Object.keys(suites).join(", ")}`);
  process.exit(2);
}

console.log(machine());
const begin = performance.now();
const folder = mkdtempSync(join(tmpdir(), "skein-bench-"));
const versions: Record<string, string> = {};
const plots: Plot[] = [];
const rows: Row[] = [];
try {
  for (const name of names) {
    process.stderr.write(`measuring ${name} …\n`);
    const measured = await suites[name]!({ folder, versions, plots, quick: values.quick });
    for (const { benchmark, peer, ratio } of measured)
      process.stderr.write(`  ${benchmark} beside ${peer}: ${ratio?.toFixed(2) ?? "–"}\n`);
    rows.push(...measured);
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(`\n${formatTable(rows)}`);
const missed = shortfalls(rows);
if (missed.length > 0) console.log(`\nFell short:\n${missed.join("\n")}`);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
if (values.page !== undefined) {
  const command = [
    "pnpm bench",
    ...(values.only === undefined ? [] : ["--only", values.only]),
    ...(values.quick ? ["--quick"] : []),
  ].join(" "); // the output path does not belong in the page's command
  writeFileSync(
    values.page,
    formatPage({
      title: values.title ?? "Benchmarks",
      date: new Date().toISOString().slice(0, 10),
      command,
      rows,
      versions,
      plots: writePlots(plots, values.page),
      seconds: (performance.now() - begin) / 1000,
    }),
  );
}
