import type { Study } from "../studies/study.ts";
import { stepPage } from "./step-page.ts";
import { planSteps, type StepRun } from "./step-plan.ts";

/**
 * Study of full steps of a GPT with experts: compares the plan that a job chooses for itself with all other choices.
 */
export const moeStepTimes: Study<StepRun> = {
  name: "moe-step",
  title: "Whole steps with experts over hosts: ways to travel, shards, and what a job plans for itself",
  about: "Train a few steps of a GPT with experts on ranks of two emulated hosts, with each choice and with auto.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  plan: planSteps,
  page: stepPage,
};
