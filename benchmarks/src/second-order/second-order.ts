import type { Study } from "../studies/study.ts";
import { ladderName, type LadderRun, minSeeds, planLadder } from "./ladder.ts";
import { ladderPage } from "./page.ts";
import { searchName } from "./search-plan.ts";

/** Study of the number of steps and seconds that each optimizer needs to reach a target. */
export const secondOrder: Study<LadderRun> = {
  name: ladderName,
  title: "Steps and seconds to a target, by second-order optimizers",
  about: "Train each task with each optimizer for longer and longer, until the mean of three seeds reaches the target.",
  seeds: minSeeds,
  takes: 1,
  after: [searchName],
  isAdaptive: true,
  plan: planLadder,
  page: ladderPage,
};
