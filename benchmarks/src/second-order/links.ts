import type { Study } from "../studies/study.ts";
import { linksPage } from "./links-page.ts";
import { type LinksRun, planLinks } from "./links-plan.ts";

/** Study of step and stage times of K-FAC variants over emulated networks. */
export const secondOrderLinks: Study<LinksRun> = {
  name: "second-order-links",
  title: "Forms of K-FAC over emulated links",
  about: "Train a few steps over emulated networks with each form of K-FAC, and see what each stage of a step takes.",
  seeds: 1,
  takes: 2,
  maxSeeds: 1,
  plan: planLinks,
  page: linksPage,
};
