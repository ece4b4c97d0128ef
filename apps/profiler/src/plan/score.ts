import {
  codecSeconds,
  type GroupExchange,
  isStart,
  type PricedExchange,
  type StepProgram,
} from "@skein/cost-model/pricing";
import type { HardwareFile } from "@skein/cost-model/hardware";
import type { ProfiledJob } from "skein-train/profiling";
import { simulateStep } from "../predict/simulate-step.ts";
import type { Settings } from "../predict/candidates.ts";

/** A configuration with its predicted step time. */
export interface Scored {
  /** Job settings that the configuration changes. */
  readonly settings: Settings;
  readonly seconds: number;
  readonly exposedSeconds: number;
  /** Bytes that each rank sends per step. */
  readonly sentBytes: number;
  /** Seconds of encoding and decoding per step. */
  readonly codecSeconds: number;
}

/** Simulates one step of all ranks with a program whose operations have predicted times. */
export const scoreStep = (
  job: ProfiledJob,
  hardware: HardwareFile,
  program: StepProgram,
  { settings, exchanges = [] }: { readonly settings: Settings; readonly exchanges?: readonly GroupExchange[] },
): Scored => {
  const { stepSeconds, exposedSeconds } = simulateStep(job, program, hardware, { spans: false });
  const sums = new Map<PricedExchange, number>();
  const secondsOf = (exchange: PricedExchange): number => {
    const known = sums.get(exchange) ?? codecSeconds(exchange);
    sums.set(exchange, known);
    return known;
  };
  return {
    settings,
    seconds: stepSeconds,
    exposedSeconds: Math.max(...exposedSeconds),
    sentBytes: program.filter(isStart).reduce((sum, { price }) => sum + price.sentBytes, 0),
    codecSeconds: exchanges.reduce((sum, { exchange }) => sum + secondsOf(exchange), 0),
  };
};
