import type { RunningCosts } from "../hardware/hardware.ts";
import type { CollectivePhase, Program, SimulatedTask } from "../simulation/task.ts";
import { kernelsDuringCollectives, overlapsOf } from "./overlaps.ts";
import type { StepProgram } from "./step-program.ts";

/** Costs of a rank in addition to kernels and messages. */
type Overheads = Omit<RunningCosts, "stepVariation" | "messageDelaySeconds">;

const noOverheads: Overheads = {
  secondsPerStep: 0,
  secondsPerCollective: 0,
  collectiveLatencySeconds: 0,
  secondsPerByteBeside: 0,
};

/**
 * Computes the relative slowdown of each kernel by concurrent collectives, by index. The cost of a collective's bytes
 * is distributed evenly over the kernels between its start and its wait, and does not exceed the time of these kernels.
 * `overlapSlowdown` is added only once, even if several collectives overlap with a kernel.
 */
const slowdowns = (
  program: StepProgram,
  { secondsPerByteBeside, overlapSlowdown = 0 }: Pick<Overheads, "secondsPerByteBeside" | "overlapSlowdown">,
): readonly number[] => {
  const changes = new Float64Array(program.length);
  for (const { start, wait, computedSeconds, sentBytes } of overlapsOf(program)) {
    const slowdown = Math.min(1, (secondsPerByteBeside * sentBytes) / computedSeconds);
    changes[start]! += slowdown;
    changes[wait]! -= slowdown;
  }
  const isOverlapped = kernelsDuringCollectives(program);
  let slowdown = 0;
  return [...changes].map(
    (change, index) => Math.max(0, (slowdown += change)) + (isOverlapped[index]! ? overlapSlowdown : 0),
  );
};

const delayed = (phases: readonly CollectivePhase[], seconds: number): readonly CollectivePhase[] => {
  const [first, ...others] = phases;
  return first === undefined || seconds === 0
    ? phases
    : [{ ...first, startupSeconds: first.startupSeconds + seconds }, ...others];
};

/**
 * Converts a step with predicted times to tasks of the simulator. Kernels run one after another on the compute stream,
 * as in backends. A collective starts after the kernels that precede it in the program, and the compute stream stops at
 * the collective's wait until the collective ends.
 *
 * @param overheads Extra costs: per step (added at its end), per collective (added at its start and on the network),
 * and per byte (added to concurrent kernels). Default: no extra costs.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * const hardware = { device: hardwareNamed("v100").device, collectives: {} };
 * const program = stepTasks(stepProgram({ graph, settled: new Set() }, hardware));
 * console.log(simulate({ programs: [program], groups: {} }).stepSeconds > 0); // true
 * ```
 */
export const stepTasks = (program: StepProgram, overheads: Overheads = noOverheads): Program => {
  const { secondsPerStep, secondsPerCollective, collectiveLatencySeconds, secondsPerByteBeside } = overheads;
  let lastKernel: number | undefined;
  const isSlowed = secondsPerByteBeside > 0 || (overheads.overlapSlowdown ?? 0) > 0;
  const slowdownByIndex = isSlowed ? slowdowns(program, overheads) : undefined;
  const tasks = program.map((step, index): SimulatedTask => {
    const { name, args } = step;
    if (step.kind === "wait") return { kind: "wait", for: step.start };
    const after = lastKernel === undefined ? {} : { after: [lastKernel] };
    if (step.kind === "kernel") {
      lastKernel = index;
      return { kind: "compute", name, args, seconds: step.price.seconds * (1 + (slowdownByIndex?.[index] ?? 0)) };
    }
    const { collective, axis, bytes, price, priority } = step;
    const numbered = priority === undefined ? {} : { priority };
    const phases = delayed(price.phases, collectiveLatencySeconds);
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
