import type { Study } from "../studies/study.ts";
import { convergencePage } from "./page.ts";
import { type ConvergenceRun, convergenceName, minSeeds, planConvergence, searchName } from "./plan.ts";

/** Study of whether training with compressed gradients reaches the quality of dense training. */
export const convergence: Study<ConvergenceRun> = {
  name: convergenceName,
  title: "Convergence with compressed gradients",
  about: "Train each model with each compression, and set held-out accuracy or bits per byte beside dense training.",
  seeds: minSeeds,
  takes: 1,
  after: [searchName],
  plan: planConvergence,
  page: convergencePage,
};
