import type { Study } from "../studies/study.ts";
import { convergencePage } from "./page.ts";
import { type ConvergenceRun, convergenceName, minSeeds, planConvergence, searchName } from "./plan.ts";

/** Whether training with compressed gradients ends where dense training does. */
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
