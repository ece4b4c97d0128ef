import { InvariantError } from "@skein/tensor-core";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/** A wait that knows its start, wherever that will stand. */
export interface FreeWait {
  readonly kind: "wait";
  readonly step: WaitStep;
  readonly of: StartStep;
}

/** A step of a program that is being put together. Starts are told apart as objects. */
export type FreeStep = KernelStep | StartStep | FreeWait;

/** The steps of a program without their places. */
export const freeSteps = (program: StepProgram): FreeStep[] =>
  program.map((step) => (step.kind === "wait" ? { kind: "wait", step, of: program[step.start] as StartStep } : step));

/** Number steps: waits name their starts by place. @throws InvariantError for a wait before its start. */
export const linkedSteps = (steps: readonly FreeStep[]): StepProgram => {
  const places = new Map<StartStep, number>();
  return steps.map((step, index) => {
    if (step.kind === "start") places.set(step, index);
    if (step.kind !== "wait") return step;
    const start = places.get(step.of);
    if (start === undefined) throw new InvariantError(`"${step.step.name}" is waited for before it was started`);
    return { ...step.step, start };
  });
};
