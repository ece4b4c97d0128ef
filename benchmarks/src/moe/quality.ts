import type { Study } from "../studies/study.ts";
import { minSeeds, qualityPage } from "./quality-page.ts";
import { planQuality, type QualityRun } from "./quality-plan.ts";
import { searchName } from "./search-plan.ts";

/**
 * Study of whether a mixture of experts with each gate reaches better quality than a dense model with equal flops per
 * token.
 */
export const moeQuality: Study<QualityRun> = {
  name: "moe-quality",
  title: "Mixtures of experts beside a dense GPT of equal flops per token",
  about: "Train a GPT on Moby-Dick, dense and with each gate and several capacities, and judge by test samples.",
  seeds: minSeeds,
  takes: 1,
  after: [searchName],
  plan: planQuality,
  page: qualityPage,
};
