import { ArgumentError } from "@skein/tensor-core";
import type { CollectivePricer } from "./collective-price.ts";
import { checkGroups, stepsByBucket } from "./exchange-steps.ts";
import type { KernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import { mergeByIndex } from "./rebucket.ts";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/** One half of a bucket's exchange, as indices into the program: kernels before, one message, and kernels after. */
interface Half {
  readonly before: readonly number[];
  readonly start: number;
  readonly wait: number;
  readonly after: readonly number[];
}

/**
 * Both halves of a bucket's exchange in one step. At the start of a step, `gather` ends the previous exchange. Later in
 * the step, `scatter` begins the next exchange.
 */
interface Halves {
  readonly gather: Half;
  readonly scatter: Half;
}

/**
 * Finds the halves of a bucket's exchange.
 * @throws ArgumentError unless the bucket has one message at the start of the step and one message later in the step.
 */
const halvesOfBucket = (program: StepProgram, bucket: number, own: readonly number[]): Halves => {
  const starts = own.filter((index) => program[index]!.kind === "start");
  const waits = own.filter((index) => program[index]!.kind === "wait");
  const [first, second] = starts;
  const [firstWait, secondWait] = waits;
  if (
    starts.length !== 2 ||
    first === undefined ||
    second === undefined ||
    firstWait === undefined ||
    secondWait === undefined
  )
    throw new ArgumentError(
      `bucket ${bucket} is exchanged by ${starts.length} collectives, but a step in halves has two per bucket; price this compression separately for each plan`,
    );
  const kernels = own.filter((index) => program[index]!.kind === "kernel");
  // Kernels directly before the second message pack its data. The kernels before them, after the first message's wait,
  // unpack the first message.
  let packs = second;
  while (kernels.includes(packs - 1)) packs--;
  return {
    gather: {
      before: kernels.filter((index) => index < first),
      start: first,
      wait: firstWait,
      after: kernels.filter((index) => index > firstWait && index < packs),
    },
    scatter: {
      before: kernels.filter((index) => index >= packs && index < second),
      start: second,
      wait: secondWait,
      after: kernels.filter((index) => index > second),
    },
  };
};

/**
 * New grouping of the buckets of a step in which gradients are exchanged in halves. The step contains predicted times.
 */
export interface HalvesRebucketing {
  /**
   * Groups of bucket numbers of the program. The buckets of a group are exchanged together; each bucket is in one
   * group.
   */
  readonly groups: readonly (readonly number[])[];
  readonly priceKernel: KernelPricer;
  /** Functions that predict the times of collectives, by mesh axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * Regroups the exchanges of a step with predicted times, like `rebucket`, for gradients exchanged in halves (DeAR):
 * each group is reduce-scattered when its last gradient is ready, and all-gathered at the start of the next step.
 * All-gathers are ordered by the forward pass's first use of a tensor of the group.
 *
 * Not modeled: a group is padded once instead of once per tensor, a difference of fewer than P elements per tensor.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError if the groups do not contain every bucket exactly once, or if the step does not exchange
 * gradients in halves.
 */
export const rebucketHalves = (
  program: StepProgram,
  { groups, priceKernel, collectives }: HalvesRebucketing,
): StepProgram => {
  const halvesByBucket = new Map(
    [...stepsByBucket(program)].map(([bucket, own]) => [bucket, halvesOfBucket(program, bucket, own)]),
  );
  checkGroups(groups, halvesByBucket.keys());
  const all = [...halvesByBucket.values()].flatMap(({ gather, scatter }) => [gather, scatter]);
  const removed = new Set(all.flatMap(({ before, start, wait, after }) => [...before, start, wait, ...after]));
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void =>
    void inserted.set(index, [...(inserted.get(index) ?? []), ...added]);
  const kernels = (lists: readonly (readonly number[])[]): KernelStep[] =>
    mergeByIndex(
      lists.map((list) => list.map((index) => program[index] as KernelStep)),
      priceKernel,
    );
  /**
   * Inserts one merged half (reduce-scatter or all-gather) in place of the same halves of several buckets.
   * @param startAt Function that returns the index of the merged message, given the indices of the messages to merge.
   */
  const insertHalf = (halves: readonly Half[], startAt: (...indices: number[]) => number): void => {
    const starts = halves.map(({ start }) => program[start] as StartStep);
    const [first] = starts as [StartStep];
    const bytes = starts.reduce((sum, start) => sum + start.bytes, 0);
    const start: StartStep = {
      ...first,
      bytes,
      price: collectives[first.axis]!(first.collective, bytes, first.isRagged),
    };
    const wait: FreeStep = { kind: "wait", step: program[halves[0]!.wait] as WaitStep, of: start };
    insert(startAt(...halves.map((half) => half.start)), [...kernels(halves.map(({ before }) => before)), start]);
    insert(Math.min(...halves.map((half) => half.wait)), [wait, ...kernels(halves.map(({ after }) => after))]);
  };
  for (const group of groups) {
    const own = group.map((bucket) => halvesByBucket.get(bucket)!);
    insertHalf(
      own.map(({ gather }) => gather),
      Math.min,
    );
    insertHalf(
      own.map(({ scatter }) => scatter),
      Math.max,
    );
  }
  return linkedSteps(
    freeSteps(program).flatMap((step, index) => [
      ...(inserted.get(index) ?? []),
      ...(removed.has(index) ? [] : [step]),
    ]),
  );
};
