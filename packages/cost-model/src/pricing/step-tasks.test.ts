import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Program } from "../simulation/task.ts";
import type { StepProgram } from "./step-program.ts";
import { stepTasks } from "./step-tasks.ts";

const kernel = (seconds: number): StepProgram[number] => ({
  kind: "kernel",
  node: 0,
  name: "matmul",
  scope: "",
  args: {},
  operator: "matmul",
  price: { flops: 1, bytes: 1, seconds, rooflineSeconds: seconds, boundBy: "flops", basis: "measured" },
});
const start = (sentBytes: number): StepProgram[number] => ({
  kind: "start",
  node: 0,
  name: "all-reduce",
  scope: "",
  args: {},
  collective: "all-reduce",
  axis: "data",
  bytes: sentBytes,
  price: {
    algorithm: "ring-all-reduce",
    segments: 1,
    seconds: 3,
    sentBytes,
    phases: [
      { stream: "intra-node", startupSeconds: 1, transferSeconds: 1 },
      { stream: "inter-node", startupSeconds: 1, transferSeconds: 0 },
    ],
  },
});
const wait = (of: number): StepProgram[number] => ({
  kind: "wait",
  node: 0,
  name: "all-reduce",
  scope: "",
  args: {},
  start: of,
});

const nothing = { secondsPerStep: 0, secondsPerCollective: 0, collectiveLatencySeconds: 0, secondsPerByteBeside: 0 };
const computed = (tasks: Program): number[] => tasks.flatMap((task) => (task.kind === "compute" ? [task.seconds] : []));
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe("costs of running ranks in addition to kernels and messages", () => {
  test("bytes lengthen only the kernels between their start and their wait", () => {
    const program = [kernel(1), start(10), kernel(2), kernel(6), wait(1), kernel(4)];
    expect(computed(stepTasks(program, { ...nothing, secondsPerByteBeside: 0.2 }))).toEqual([1, 2.5, 7.5, 4]);
  });

  test("overlap slows the kernels during collectives once, for any number of collectives, in addition to their bytes", () => {
    const program = [kernel(1), start(1), kernel(2), start(1), kernel(2), wait(1), kernel(2), wait(3), kernel(3)];
    expect(computed(stepTasks(program, { ...nothing, overlapSlowdown: 0.5 }))).toEqual([1, 3, 3, 3, 3]);
    const both = computed(stepTasks(program, { ...nothing, overlapSlowdown: 0.5, secondsPerByteBeside: 1 }));
    expect(both[1]).toBeCloseTo(2 * (1 + 0.5 + 1 / 4), 12);
    expect(both[2]).toBeCloseTo(2 * (1 + 0.5 + 2 / 4), 12);
    expect(both.at(-1)).toBe(3);
    const alone = [kernel(1), start(9), wait(1), kernel(2)];
    expect(computed(stepTasks(alone, { ...nothing, overlapSlowdown: 0.5 }))).toEqual([1, 2]);
  });

  test("two concurrent collectives both lengthen the kernels during both", () => {
    const program = [start(1), kernel(2), start(1), kernel(2), wait(0), kernel(2), wait(2)];
    const [first, both, second] = computed(stepTasks(program, { ...nothing, secondsPerByteBeside: 1 }));
    expect(first).toBeCloseTo(2.5, 12);
    expect(both).toBeCloseTo(3, 12);
    expect(second).toBeCloseTo(2.5, 12);
  });

  test("a collective's latency is on the network, once", () => {
    const [task] = stepTasks([start(10), wait(0)], {
      ...nothing,
      collectiveLatencySeconds: 0.5,
      secondsPerCollective: 0.25,
    });
    expect(task).toMatchObject({ startSeconds: 0.25, phases: [{ startupSeconds: 1.5 }, { startupSeconds: 1 }] });
  });

  test("bytes lengthen kernels by their total cost, but by at most the concurrent computation", () => {
    const part = fc.record({
      kernelSeconds: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 3 }),
      bytes: fc.integer({ min: 0, max: 20 }),
    });
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 6 }),
        fc.double({ min: 0, max: 2, noNaN: true }),
        (parts, secondsPerByteBeside) => {
          // Collectives in sequence, each with its own kernels between start and wait.
          const program: StepProgram[number][] = [];
          for (const { kernelSeconds, bytes } of parts) {
            const at = program.length;
            program.push(start(bytes), ...kernelSeconds.map(kernel), wait(at));
          }
          const longer =
            sum(computed(stepTasks(program, { ...nothing, secondsPerByteBeside }))) - sum(computed(stepTasks(program)));
          expect(longer).toBeCloseTo(
            sum(parts.map(({ kernelSeconds, bytes }) => Math.min(sum(kernelSeconds), secondsPerByteBeside * bytes))),
            9,
          );
        },
      ),
    );
  });
});
