// Measures how often the published greedy merge finds the optimal plan, and how much slower its other results are. Run:
// node bench/greedy-optimality.bench.ts
import { randomKey } from "@skein/tensor-core";
import { threefryWord } from "@skein/tensor-core/backend";
import { allInOne, onePerTensor, timelineOf } from "../src/index.ts";
import { planMgWfbp, planMgWfbpOptimal } from "../src/planners.ts";
import type { BucketPlan } from "@skein/tensor-core";

const numProfiles = 2000;
const key = randomKey(1).data;
let drawn = 0;
const uniform = (): number => threefryWord(key, drawn++) / 2 ** 32;

const counts = { optimal: 0, slowerThanOnePerTensor: 0, slowerThanAllInOne: 0, moreBucketsForMoreStartup: 0 };
let worst = 1;
for (let i = 0; i < numProfiles; i++) {
  const heaviness = 10 ** (2 * uniform() - 1);
  const tensors = Array.from({ length: 2 + Math.floor(8 * uniform()) }, (_, tensor) => ({
    path: `t${tensor}`,
    bytes: heaviness * Math.exp(3 * uniform()),
    backwardSeconds: Math.exp(3 * uniform()),
  }));
  const profile = { tensors };
  const model = { startupSeconds: Math.exp(4 * uniform() - 1), secondsPerByte: 1 };
  const end = (plan: BucketPlan): number => timelineOf(profile, plan, model).communicationEndSeconds;
  const slower = (a: number, b: number): boolean => a > b * (1 + 1e-12);
  const greedy = end(planMgWfbp(profile, model));
  const plan = planMgWfbpOptimal(profile, model);
  worst = Math.max(worst, greedy / end(plan));
  if (!slower(greedy, end(plan))) counts.optimal++;
  if (slower(greedy, end(onePerTensor(profile)))) counts.slowerThanOnePerTensor++;
  if (slower(greedy, end(allInOne(profile)))) counts.slowerThanAllInOne++;
  const dearer = { ...model, startupSeconds: 1.5 * model.startupSeconds };
  if (planMgWfbpOptimal(profile, dearer).length > plan.length) counts.moreBucketsForMoreStartup++;
}
console.log(`${numProfiles} random profiles of 2 to 9 tensors`);
for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(28)} ${count}`);
console.log(`worst end, greedy / optimal   ${worst.toFixed(3)}`);
