// Measures the cost of recording a step. Run: node apps/profiler/bench/overhead.bench.ts [--ranks 1] [--steps 200]
// [jobs…]
//
// Only every second step of a run is recorded, so that drift within a run and differences between runs affect recorded
// and unrecorded steps equally. Consecutive steps are compared in pairs. Do not run this benchmark on a busy machine,
// because the two steps of a pair must take equally long, except for recording.
import { worldSeconds, worldSteps } from "@skein/report";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median, medianAbsoluteDeviation } from "@skein/measuring";
import { openJob } from "skein-train/profiling";
import { spanOverheadSeconds } from "../src/profile/span-overhead.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ranks: { type: "string", default: "1" }, steps: { type: "string", default: "200" } },
});
const jobs =
  positionals.length > 0
    ? positionals
    : ["mnist", "moby-dick"].map((name) => fileURLToPath(new URL(`../../trainer/jobs/${name}.yaml`, import.meta.url)));
const warmUpSteps = 10;
const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

for (const file of jobs) {
  const job = await openJob(file, { ranks: values.ranks, set: ["backend=cpu"] });
  const steps = worldSteps((await job.run(warmUpSteps + Number(values.steps), { detailEvery: 2 })).ranks).slice(
    warmUpSteps,
  );
  const recorded = steps.filter((ranks) => ranks[0]!.spans.length > 0);
  const numSpans = median(recorded.map((ranks) => Math.max(...ranks.map(({ spans }) => spans.length))));
  // Each step is compared with its predecessor and with its successor, so that linear drift cancels.
  const costs = steps.slice(1).map((step, i) => {
    const other = steps[i]!;
    const [withSpans, without] = step[0]!.spans.length > 0 ? [step, other] : [other, step];
    return worldSeconds(withSpans) / worldSeconds(without) - 1;
  });
  const plain = median(steps.filter((ranks) => ranks[0]!.spans.length === 0).map(worldSeconds));
  const least = (numSpans * spanOverheadSeconds()) / plain;
  const error = (1.2533 * 1.4826 * medianAbsoluteDeviation(costs)) / Math.sqrt(costs.length / 2);
  console.log(
    `${job.facts.name}, ${values.ranks} ${values.ranks === "1" ? "rank" : "ranks"}: a step takes ${(1000 * plain).toFixed(2)} ms, and has ${numSpans} spans when recorded; recording costs ${percent(median(costs))} ± ${percent(error)} (median of ${costs.length} pairs, standard error); by the cost of a span alone ${percent(least)}`,
  );
}
