import type { HardwareFile } from "@skein/cost-model/hardware";
import { type PreparedGraph, type StepProgram, stepProgram } from "@skein/cost-model/pricing";
import type { SimulatedStep } from "@skein/cost-model/simulation";
import type { ExchangePlan, ProfiledJob } from "skein-train/profiling";
import { pricersOn } from "./groups-on.ts";
import { planOn } from "./plan-on.ts";
import { simulateStep } from "./simulate-step.ts";

/** Predicted step of a job on given hardware. */
export interface Prediction {
  readonly program: StepProgram;
  readonly simulated: SimulatedStep;
}

/** Predicts the time of each node of a prepared step. */
export const pricePrepared = (
  step: PreparedGraph,
  job: Pick<ProfiledJob, "groups">,
  hardware: HardwareFile,
): StepProgram => stepProgram(step, { device: hardware.device, collectives: pricersOn(job, hardware) });

/**
 * Prepares the job's step as its backend does, and predicts the time of each node. Cost: compiling the step without
 * running kernels.
 *
 * @param plan Plan of the exchange, as returned by `planOn`.
 */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile, plan?: ExchangePlan): StepProgram =>
  pricePrepared(job.step(plan), job, hardware);

/**
 * Predicts a step of a job on given hardware.
 *
 * @param plan Plan of the exchange. Default: a plan from predicted times, whereas a run makes its plan from measured
 * times.
 */
export const predictStep = async (
  job: ProfiledJob,
  hardware: HardwareFile,
  plan?: ExchangePlan,
): Promise<Prediction> => {
  const program = pricedStep(job, hardware, plan ?? (await planOn(job, hardware)));
  return { program, simulated: simulateStep(job, program, hardware) };
};
