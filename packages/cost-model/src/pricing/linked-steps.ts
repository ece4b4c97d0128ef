import { InvariantError } from "@skein/tensor-core";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/** A wait that refers to the start of its collective by object, not by index. */
export interface FreeWait {
  readonly kind: "wait";
  readonly step: WaitStep;
  readonly of: StartStep;
}

/** A step of a program under construction, in which a wait refers to its start as an object. */
export type FreeStep = KernelStep | StartStep | FreeWait;

/** Converts the steps of a program to steps whose waits refer to their starts as objects. */
export const freeSteps = (program: StepProgram): FreeStep[] =>
  program.map((step) => (step.kind === "wait" ? { kind: "wait", step, of: program[step.start] as StartStep } : step));

/**
 * Converts steps to a program, in which waits refer to their starts by index.
 * @throws InvariantError if a wait precedes its start.
 */
export const linkedSteps = (steps: readonly FreeStep[]): StepProgram => {
  const indices = new Map<StartStep, number>();
  return steps.map((step, index) => {
    if (step.kind === "start") indices.set(step, index);
    if (step.kind !== "wait") return step;
    const start = indices.get(step.of);
    if (start === undefined) throw new InvariantError(`"${step.step.name}" has a wait before its start`);
    return { ...step.step, start };
  });
};
