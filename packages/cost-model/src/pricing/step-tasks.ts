import type { RunningCosts } from "../hardware/hardware.ts";
import type { Program, Task } from "../simulation/task.ts";
import type { StepProgram } from "./step-program.ts";

/** What a rank's step takes beside its kernels. */
type Beside = Pick<RunningCosts, "secondsPerStep" | "secondsPerCollective">;

const nothing: Beside = { secondsPerStep: 0, secondsPerCollective: 0 };

/**
 * A priced step as the simulator takes it: kernels one after the other on the compute stream, as backends run them; a collective starts where the program
 * comes to it, once what it sends is computed, and the compute stream stands still at its wait.
 *
 * @param beside of a step, at its end; of a collective, where it starts. Default: nothing.
 */
export const stepTasks = (program: StepProgram, { secondsPerStep, secondsPerCollective: startSeconds }: Beside = nothing): Program => {
  let lastKernel: number | undefined;
  const tasks = program.map((step, index): Task => {
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
  return secondsPerStep === 0 ? tasks : [...tasks, { kind: "compute", name: "outside of kernels", seconds: secondsPerStep }];
};
