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

/** Price a step that has already been prepared, node by node. */
export const pricePrepared = (
  step: PreparedGraph,
  job: Pick<ProfiledJob, "groups">,
  hardware: HardwareFile,
): StepProgram => stepProgram(step, { device: hardware.device, collectives: pricersOn(job, hardware) });

/**
 * Prepare the job's step as its backend does, and price each node. Cost: that of compiling the step, without running
 * kernels.
 *
 * @param plan Plan of the exchange, as returned by `planOn`.
 */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile, plan?: ExchangePlan): StepProgram =>
  pricePrepared(job.step(plan), job, hardware);

/**
 * Predict a step of a job on given hardware.
 *
 * @param plan Plan of the exchange. Default: a plan made from prices; a run would make the plan from measurements.
 */
export const predictStep = async (
  job: ProfiledJob,
  hardware: HardwareFile,
  plan?: ExchangePlan,
): Promise<Prediction> => {
  const program = pricedStep(job, hardware, plan ?? (await planOn(job, hardware)));
  return { program, simulated: simulateStep(job, program, hardware) };
};
