import { ArgumentError } from "@skein/tensor-core";
import type { CollectivePricer } from "./collective-price.ts";
import { checkGroups, exchangePlaces } from "./exchange-places.ts";
import type { KernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/** One kernel for several that do the same to parts: their work together, one start. */
const merged = (kernels: readonly KernelStep[], price: KernelPricer): KernelStep => {
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

/** The k-th kernels of several lists, merged; what only some have is merged of those. */
export const zipped = (lists: readonly (readonly KernelStep[])[], price: KernelPricer): KernelStep[] => {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, k) =>
    merged(
      lists.flatMap((list) => list[k] ?? []),
      price,
    ),
  );
};

/** How the gradients of a priced step are exchanged in another way. */
export interface Rebucketing {
  /** Buckets of the program that travel together, by number; each in one group. */
  readonly groups: readonly (readonly number[])[];
  /** Whether messages travel beside computation, or once all gradients are there. */
  readonly overlap: "wait-free" | "none";
  /** Of each group's message. Default: as those of the program. */
  readonly priorities?: readonly number[] | undefined;
  readonly priceKernel: KernelPricer;
  /** By axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * Make of a step that exchanges each tensor by itself, beside computation, the step that exchanges groups of them: each
 * group is packed and sent when its last gradient is ready, waited for where its first result is needed, and its
 * kernels are priced as one of all their work. Without overlap, messages go one after the other once all gradients are
 * there, and the step's other collectives are waited for where they start.
 *
 * What it leaves out: copies into a bucket, which backends avoid by laying gradients side by side.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError for groups that do not hold every bucket once, or whose results are needed too early, or a
 * compression of several messages.
 */
export const rebucket = (
  program: StepProgram,
  { groups, overlap, priorities, priceKernel, collectives }: Rebucketing,
): StepProgram => {
  const exchanges = exchangePlaces(program);
  checkGroups(groups, exchanges.keys());
  const steps = freeSteps(program);
  const kernelsAt = (places: readonly number[]): KernelStep[] => places.map((index) => program[index] as KernelStep);
  const removed = new Set(
    [...exchanges.values()].flatMap(({ encode, start, wait, decode }) => [...encode, start, wait, ...decode]),
  );
  /** What comes in place of the step at an index, or before the step that stands there. */
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void => {
    const there = inserted.get(index);
    if (there === undefined) inserted.set(index, [...added]);
    else there.push(...added);
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
    const encode = zipped(
      own.map((exchange) => kernelsAt(exchange.encode)),
      priceKernel,
    );
    const decode = zipped(
      own.map((exchange) => kernelsAt(exchange.decode)),
      priceKernel,
    );
    const readyAt = Math.max(...own.map((exchange) => exchange.start));
    if (waitAt < readyAt)
      throw new ArgumentError(
        `buckets [${group.join(", ")}] cannot travel together: a result of one is needed before the gradient of another is ready; group others, or none of them`,
      );
    if (overlap === "none") insert(firstWait, [...encode, start, wait, ...decode]);
    else {
      insert(readyAt, [...encode, start]);
      insert(waitAt, [wait, ...decode]);
    }
  }
  const moved = overlap === "none" ? waitsAtTheirStarts(steps, removed, insert) : new Set<number>();
  return linkedSteps(
    steps.flatMap((step, index) => [
      ...(inserted.get(index) ?? []),
      ...(removed.has(index) || moved.has(index) ? [] : [step]),
    ]),
  );
};

/** Wait for a step's other collectives where they start. @returns the places of those waits as they were. */
export const waitsAtTheirStarts = (
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
