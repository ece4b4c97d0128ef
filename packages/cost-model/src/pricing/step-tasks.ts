import type { RunningCosts } from "../hardware/hardware.ts";
import type { Phase, Program, Task } from "../simulation/task.ts";
import { besideCollectives, overlapsOf } from "./overlaps.ts";
import type { StepProgram } from "./step-program.ts";

/** What running ranks take beside kernels and messages. */
type Beside = Omit<RunningCosts, "stepVariation" | "messageDelaySeconds">;

const nothing: Beside = {
  secondsPerStep: 0,
  secondsPerCollective: 0,
  collectiveLatencySeconds: 0,
  secondsPerByteBeside: 0,
};

/**
 * Compute by place how much longer a kernel takes for the collectives beside it, as a share of its own time. The cost
 * of a collective's bytes is spread evenly over the kernels between its start and its wait, and is no more than these
 * take; the slowdown of overlap counts once, however many collectives travel.
 */
const slownessOf = (
  program: StepProgram,
  { secondsPerByteBeside, overlapSlowdown = 0 }: Pick<Beside, "secondsPerByteBeside" | "overlapSlowdown">,
): readonly number[] => {
  const changes = new Float64Array(program.length);
  for (const { start, wait, computedSeconds, sentBytes } of overlapsOf(program)) {
    const slowness = Math.min(1, (secondsPerByteBeside * sentBytes) / computedSeconds);
    changes[start]! += slowness;
    changes[wait]! -= slowness;
  }
  const beside = besideCollectives(program);
  let slowness = 0;
  return [...changes].map(
    (change, place) => Math.max(0, (slowness += change)) + (beside[place]! ? overlapSlowdown : 0),
  );
};

const laterBy = (phases: readonly Phase[], seconds: number): readonly Phase[] => {
  const [first, ...others] = phases;
  return first === undefined || seconds === 0
    ? phases
    : [{ ...first, startupSeconds: first.startupSeconds + seconds }, ...others];
};

/**
 * A priced step as the simulator takes it: kernels one after the other on the compute stream, as backends run them; a
 * collective starts where the program comes to it, once what it sends is computed, and the compute stream stands still
 * at its wait.
 *
 * @param beside of a step, at its end; of a collective, where it starts and on the network; of its bytes, in the
 * kernels beside it. Default: nothing.
 */
export const stepTasks = (program: StepProgram, beside: Beside = nothing): Program => {
  const { secondsPerStep, secondsPerCollective, collectiveLatencySeconds, secondsPerByteBeside } = beside;
  let lastKernel: number | undefined;
  const isSlowed = secondsPerByteBeside > 0 || (beside.overlapSlowdown ?? 0) > 0;
  const slowness = isSlowed ? slownessOf(program, beside) : undefined;
  const tasks = program.map((step, index): Task => {
    const { name, args } = step;
    if (step.kind === "wait") return { kind: "wait", for: step.start };
    const after = lastKernel === undefined ? {} : { after: [lastKernel] };
    if (step.kind === "kernel") {
      lastKernel = index;
      return { kind: "compute", name, args, seconds: step.price.seconds * (1 + (slowness?.[index] ?? 0)) };
    }
    const { collective, axis, bytes, price, priority } = step;
    const numbered = priority === undefined ? {} : { priority };
    const phases = laterBy(price.phases, collectiveLatencySeconds);
    return {
      kind: "collective",
      name,
      args,
      collective,
      axis,
      bytes,
      phases,
      startSeconds: secondsPerCollective,
      ...numbered,
      ...after,
    };
  });
  return secondsPerStep === 0
    ? tasks
    : [...tasks, { kind: "compute", name: "outside of kernels", seconds: secondsPerStep }];
};
