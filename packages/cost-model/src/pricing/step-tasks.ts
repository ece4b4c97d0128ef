import type { Program, Task } from "../simulation/task.ts";
import type { StepProgram } from "./step-program.ts";

/**
 * A priced step as the simulator takes it: kernels one after the other on the compute stream, as backends run them; a collective starts where the program
 * comes to it, once what it sends is computed, and the compute stream stands still at its wait.
 *
 * @param startSeconds what handing a collective over takes of the compute stream. Default: 0.
 */
export const stepTasks = (program: StepProgram, { startSeconds = 0 }: { readonly startSeconds?: number } = {}): Program => {
  let lastKernel: number | undefined;
  return program.map((step, index): Task => {
    const { name, args } = step;
    if (step.kind === "wait") return { kind: "wait", for: step.start };
    const after = lastKernel === undefined ? {} : { after: [lastKernel] };
    if (step.kind === "kernel") {
      lastKernel = index;
      return { kind: "compute", name, args, seconds: step.price.seconds };
    }
    const { collective, axis, bytes, price, priority } = step;
    const numbered = priority === undefined ? {} : { priority };
    return { kind: "collective", name, args, collective, axis, bytes, phases: price.phases, startSeconds, ...numbered, ...after };
  });
};
