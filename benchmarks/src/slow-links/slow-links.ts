import { convergenceName, searchName } from "../convergence/plan.ts";
import type { Study } from "../studies/study.ts";
import { slowLinksPage } from "./page.ts";
import { planSlowLinks, type SlowLinksRun } from "./plan.ts";

/** Study of step times over slow networks, by exchange method. */
export const slowLinks: Study<SlowLinksRun> = {
  name: "slow-links",
  title: "Steps over emulated links",
  about:
    "Train a few steps over emulated networks with each method of exchange, and set samples per second beside exchange after the backward pass.",
  seeds: 1,
  takes: 3,
  after: [searchName, convergenceName],
  plan: planSlowLinks,
  page: slowLinksPage,
};
