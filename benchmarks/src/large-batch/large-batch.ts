import type { Study } from "../studies/study.ts";
import { largeBatchPage, minSeeds } from "./page.ts";
import { type LargeBatchRun, planLargeBatch } from "./plan.ts";
import { searchName } from "./search-plan.ts";

/** Study of whether large batches, trained by LARS, reach the quality of small batches in the same number of epochs. */
export const largeBatch: Study<LargeBatchRun> = {
  name: "large-batch",
  title: "Large batches by LARS beside small ones, in as many epochs",
  about: "Train a ResNet-18 on Fashion-MNIST in small and in large batches, and judge by test samples.",
  seeds: minSeeds,
  takes: 1,
  after: [searchName],
  plan: planLargeBatch,
  page: largeBatchPage,
};
