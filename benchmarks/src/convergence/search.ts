import type { Study } from "../studies/study.ts";
import { searchName } from "./plan.ts";
import { searchPage } from "./search-page.ts";
import { planSearch, type SearchRun } from "./search-plan.ts";

/** Study that chooses the learning rate of each setting for the other studies. */
export const search: Study<SearchRun> = {
  name: searchName,
  title: "Learning rates, sought on validation samples",
  about:
    "Train each model with each compression at each of a few learning rates, and judge by samples held back from training.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  plan: planSearch,
  page: searchPage,
};
