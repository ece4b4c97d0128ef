// Measures the time to plan the exchange of GPT-2, and the time of each part. Run: node
// apps/profiler/bench/plan.bench.ts [hardware] [ranks, …]
import { fileURLToPath } from "node:url";
import { hardwareNamed } from "@skein/cost-model/hardware";
import { openJob, type ProfiledJob } from "skein-train/profiling";
import { planWorlds } from "../src/plan/plan-worlds.ts";

const [name = "hkbu-2080ti-10gbe", ranks = "8"] = process.argv.slice(2);
const spent = new Map<string, number>();

const add = (phase: string, begin: number): void =>
  void spent.set(phase, (spent.get(phase) ?? 0) + (performance.now() - begin) / 1000);

/** Returns the job with timed methods: the duration of each method call is added to `spent`. */
const timed = (job: ProfiledJob): ProfiledJob => ({
  ...job,
  with: async (set) => {
    const begin = performance.now();
    const other = await job.with(set);
    add("opening the job with other settings", begin);
    return timed(other);
  },
  step: (plan) => {
    const begin = performance.now();
    const step = job.step(plan);
    add("tracing and compiling whole steps", begin);
    return step;
  },
  exchange: (tensors, plan) => {
    const begin = performance.now();
    const exchange = job.exchange(tensors, plan);
    add("tracing exchanges by themselves", begin);
    return exchange;
  },
});

const begin = performance.now();
const job = await openJob(fileURLToPath(new URL("gpt-2.yaml", import.meta.url)));
add("opening the job", begin);
const { worlds } = await planWorlds(timed(job), hardwareNamed(name), {
  ranks: ranks.split(",").map(Number),
  keep: "rank-batch",
  lossless: false,
});
const seconds = (performance.now() - begin) / 1000;
const numConfigurations = worlds.reduce((sum, { scored }) => sum + scored.length, 0);
const known = [...spent.values()].reduce((sum, one) => sum + one, 0);
console.log(`${numConfigurations} configurations of gpt-2 on ${name}, ${ranks} ranks: ${seconds.toFixed(1)} s`);
for (const [phase, one] of [...spent, ["the rest: assembling and simulating programs", seconds - known] as const])
  console.log(`${one.toFixed(1).padStart(7)} s  ${phase}`);
