import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { simulate } from "./simulate.ts";
import type { Program, SimulatedWorld, SimulatedTask } from "./task.ts";

const compute = (seconds: number): SimulatedTask => ({ kind: "compute", name: "kernel", seconds });
const send = (messages: number, startupSeconds: number, transferSeconds: number): SimulatedTask => ({
  kind: "collective",
  name: "all-reduce",
  collective: "all-reduce",
  bytes: 8,
  axis: "data",
  phases: [{ stream: "inter-node", startupSeconds, transferSeconds, messages }],
});
const wait = (index: number): SimulatedTask => ({ kind: "wait", for: index });

const worldOf = (...programs: Program[]): SimulatedWorld => ({
  programs,
  groups: { data: [programs.map((_, rank) => rank)] },
});
const endOf = (world: SimulatedWorld, messageDelaySeconds: number): number =>
  simulate(world, { messageDelaySeconds }).stepSeconds;

describe("messages during computation", () => {
  const overlapped: Program = [send(2, 2, 3), compute(10), wait(0)];

  test("each takes its delay longer while a member certainly computes", () => {
    // Two messages of 1 s each, followed by 3 s for the bytes: 5 s without delay; a delay adds 1.5 s per message.
    const { collectives } = simulate(worldOf(overlapped, overlapped), { messageDelaySeconds: 1.5 });
    expect(collectives[0]!.endSeconds).toBeCloseTo(8, 12);
    expect(endOf(worldOf(overlapped, overlapped), 1.5)).toBe(10);
  });

  test("the rest proceeds at its normal rate after all members wait", () => {
    // A message takes 1 + 9 s during computation. So one of the two messages ends within 10 s; after that the other
    // message takes 1 s, and the bytes 3 s.
    expect(endOf(worldOf(overlapped, overlapped), 9)).toBeCloseTo(14, 12);
    // After the computation, the collective takes no longer than without delay, for any delay.
    expect(endOf(worldOf(overlapped, overlapped), 1e9)).toBeCloseTo(15, 6);
  });

  test("one computing member delays all messages; waiting members delay none", () => {
    const busy: Program = [send(1, 1, 1), compute(20), wait(0)];
    const idle: Program = [send(1, 1, 1), wait(0)];
    const endsWith = (...programs: Program[]): number =>
      simulate(worldOf(...programs), { messageDelaySeconds: 4 }).collectives[0]!.endSeconds;
    expect(endsWith(idle, idle)).toBeCloseTo(2, 12);
    expect(endsWith(idle, busy)).toBeCloseTo(6, 12);
    expect(endsWith(busy, busy)).toBeCloseTo(6, 12);
  });

  const times = fc.integer({ min: 0, max: 20 });
  const program = fc
    .array(fc.tuple(times, fc.integer({ min: 0, max: 4 }), times, times), { minLength: 1, maxLength: 5 })
    .map((rows): Program => {
      const tasks: SimulatedTask[] = [];
      const sent: number[] = [];
      for (const [seconds, messages, startup, transfer] of rows) {
        tasks.push(compute(seconds));
        sent.push(tasks.length);
        tasks.push(send(messages, startup, transfer));
      }
      return [...tasks, ...sent.map(wait)];
    });

  test("a longer delay makes no step shorter, and no step longer than without overlap", () => {
    fc.assert(
      fc.property(program, fc.integer({ min: 2, max: 3 }), times, times, (tasks, ranks, one, other) => {
        const world = worldOf(...Array.from({ length: ranks }, () => tasks));
        const [less, more] = [Math.min(one, other), Math.max(one, other)];
        expect(endOf(world, less)).toBeLessThanOrEqual(endOf(world, more) + 1e-9);
        const computing = tasks.reduce((sum, task) => sum + (task.kind === "compute" ? task.seconds : 0), 0);
        const sending = tasks.flatMap((task) => (task.kind === "collective" ? task.phases : []));
        const oneByOne = sending.reduce((sum, phase) => sum + phase.startupSeconds + phase.transferSeconds, computing);
        expect(endOf(world, more)).toBeLessThanOrEqual(oneByOne + 1e-9);
      }),
    );
  });

  test("without messages, or without delay, nothing changes", () => {
    fc.assert(
      fc.property(program, times, (tasks, delay) => {
        const silent = tasks.map((task) =>
          task.kind === "collective"
            ? { ...task, phases: task.phases.map((phase) => ({ ...phase, messages: 0 })) }
            : task,
        );
        const end = endOf(worldOf(tasks, tasks), 0);
        expect(endOf(worldOf(silent, silent), delay)).toBe(end);
        expect(simulate(worldOf(tasks, tasks)).stepSeconds).toBe(end);
      }),
    );
  });

  test.each([-1, Number.NaN, Infinity])("a delay of %d is refused", (delay) =>
    expect(() => endOf(worldOf(overlapped), delay)).toThrow("messageDelaySeconds"),
  );
});
