import type { Study } from "../studies/study.ts";
import { timesPage } from "./times-page.ts";
import { planTimes, type TimesRun } from "./times-plan.ts";

/** Study of each optimizer's step time compared with momentum. */
export const secondOrderTimes: Study<TimesRun> = {
  name: "second-order-times",
  title: "Steps of second-order optimizers beside momentum",
  about:
    "Train each task for some steps with each optimizer on one and on four ranks, and set step times beside momentum.",
  seeds: 1,
  takes: 3,
  maxSeeds: 1,
  plan: planTimes,
  page: timesPage,
};
