import { ArgumentError } from "@skein/tensor-core";
import type { CollectivePricer } from "./collective-price.ts";
import { checkGroups, exchangeSteps } from "./exchange-steps.ts";
import type { KernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/**
 * Merges kernels that do the same work on different parts of a tensor. The merged kernel has their total work, and one
 * launch.
 */
const mergedKernel = (kernels: readonly KernelStep[], price: KernelPricer): KernelStep => {
  const [first] = kernels as [KernelStep];
  const work = kernels.reduce(
    (sum, { price: own }) => ({ flops: sum.flops + own.flops, bytes: sum.bytes + own.bytes }),
    {
      flops: 0,
      bytes: 0,
    },
  );
  return { ...first, price: price(first.operator, work) };
};

/**
 * Merges the k-th kernels of several lists into one kernel, for each k. Shorter lists have no k-th kernel for large k.
 */
export const mergeByIndex = (lists: readonly (readonly KernelStep[])[], price: KernelPricer): KernelStep[] => {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, k) =>
    mergedKernel(
      lists.flatMap((list) => list[k] ?? []),
      price,
    ),
  );
};

/** New grouping of the gradient buckets of a step with predicted times. */
export interface Rebucketing {
  /**
   * Groups of bucket numbers of the program. The buckets of a group are exchanged together; each bucket is in one
   * group.
   */
  readonly groups: readonly (readonly number[])[];
  /** Whether messages are sent during computation (`wait-free`), or after all gradients are ready (`none`). */
  readonly overlap: "wait-free" | "none";
  /** Priorities of the groups' messages. Default: the priorities in the program. */
  readonly priorities?: readonly number[] | undefined;
  readonly priceKernel: KernelPricer;
  /** Functions that predict the times of collectives, by mesh axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * Converts a step that exchanges each tensor separately during computation into a step that exchanges groups of
 * tensors. Each group is packed and sent when its last gradient is ready. The step waits for the group when its first
 * result is needed. The time of a group's kernels is predicted as for one kernel with their total work. Without
 * overlap, messages follow one another after all gradients are ready, and the step waits for every collective other
 * than an exchange directly after its start.
 *
 * Not modeled: copies into a bucket, which backends avoid by storing gradients contiguously.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError if the groups do not contain every bucket exactly once, if a result of a group is needed before
 * its last gradient is ready, or if the compression sends several messages.
 */
export const rebucket = (
  program: StepProgram,
  { groups, overlap, priorities, priceKernel, collectives }: Rebucketing,
): StepProgram => {
  const exchanges = exchangeSteps(program);
  checkGroups(groups, exchanges.keys());
  const steps = freeSteps(program);
  const kernelsAt = (indices: readonly number[]): KernelStep[] => indices.map((index) => program[index] as KernelStep);
  const removed = new Set(
    [...exchanges.values()].flatMap(({ encode, start, wait, decode }) => [...encode, start, wait, ...decode]),
  );
  /**
   * Steps to insert, by the index of a program step. They are inserted before this step, or replace this step if it is
   * removed.
   */
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void => {
    const existing = inserted.get(index);
    if (existing === undefined) inserted.set(index, [...added]);
    else existing.push(...added);
  };
  const firstWait = Math.min(...[...exchanges.values()].map(({ wait }) => wait));
  for (const [number, group] of groups.entries()) {
    const own = group.map((bucket) => exchanges.get(bucket)!);
    const starts = own.map(({ start }) => program[start] as StartStep);
    const [first] = starts as [StartStep];
    const bytes = starts.reduce((sum, start) => sum + start.bytes, 0);
    const start: StartStep = {
      ...first,
      bytes,
      price: collectives[first.axis]!(first.collective, bytes, first.isRagged),
      ...(priorities !== undefined && { priority: priorities[number] }),
    };
    const waitAt = Math.min(...own.map(({ wait }) => wait));
    const wait: FreeStep = { kind: "wait", step: program[own[0]!.wait] as WaitStep, of: start };
    const encode = mergeByIndex(
      own.map((exchange) => kernelsAt(exchange.encode)),
      priceKernel,
    );
    const decode = mergeByIndex(
      own.map((exchange) => kernelsAt(exchange.decode)),
      priceKernel,
    );
    const readyAt = Math.max(...own.map((exchange) => exchange.start));
    if (waitAt < readyAt)
      throw new ArgumentError(
        `buckets [${group.join(", ")}] cannot travel together, because a result of one bucket is needed before the gradient of another is ready; split this group`,
      );
    if (overlap === "none") insert(firstWait, [...encode, start, wait, ...decode]);
    else {
      insert(readyAt, [...encode, start]);
      insert(waitAt, [wait, ...decode]);
    }
  }
  const moved = overlap === "none" ? moveWaitsToStarts(steps, removed, insert) : new Set<number>();
  return linkedSteps(
    steps.flatMap((step, index) => [
      ...(inserted.get(index) ?? []),
      ...(removed.has(index) || moved.has(index) ? [] : [step]),
    ]),
  );
};

/**
 * Moves each wait that is not in `removed` to directly after the start of its collective.
 * @returns the original indices of the moved waits.
 */
export const moveWaitsToStarts = (
  steps: readonly FreeStep[],
  removed: ReadonlySet<number>,
  insert: (index: number, added: readonly FreeStep[]) => void,
): ReadonlySet<number> => {
  const moved = new Set<number>();
  for (const [index, step] of steps.entries()) {
    if (step.kind !== "wait" || removed.has(index)) continue;
    moved.add(index);
    insert(steps.indexOf(step.of) + 1, [step]);
  }
  return moved;
};
