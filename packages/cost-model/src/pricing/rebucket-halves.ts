import { ArgumentError } from "@skein/tensor-core";
import type { CollectivePricer } from "./collective-price.ts";
import { checkGroups, placesByBucket } from "./exchange-places.ts";
import type { KernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import { zipped } from "./rebucket.ts";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

/** One half of a bucket's exchange: kernels, a message, kernels; their places in the program. */
interface Half {
  readonly before: readonly number[];
  readonly start: number;
  readonly wait: number;
  readonly after: readonly number[];
}

/** The second half of the step before, which comes first in a step, and the first half of this one's. */
interface Halves {
  readonly gather: Half;
  readonly scatter: Half;
}

/** @throws ArgumentError where a bucket is not exchanged by one message at the begin of a step and another in it. */
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
      `bucket ${bucket} is exchanged by ${starts.length} collectives; a step in halves has two for each: price this compression with each plan by itself`,
    );
  const kernels = own.filter((index) => program[index]!.kind === "kernel");
  // What stands directly before the second message packs it; what comes between the first one's wait and that unpacks.
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

/** How the halves of a priced step are bucketed in another way. */
export interface HalvesRebucketing {
  /** Buckets of the program that travel together, by number; each in one group. */
  readonly groups: readonly (readonly number[])[];
  readonly priceKernel: KernelPricer;
  /** By axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * `rebucket` for a step in halves (DeAR): each group is reduce-scattered when its last gradient is ready, and gathered
 * at the begin of the step, in the order in which the forward pass first needs one of it.
 *
 * What it leaves out: that shards of a group are filled up once, and not once for each tensor; fewer than P elements of
 * each.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError for groups that do not hold every bucket once, or a step that is not in halves.
 */
export const rebucketHalves = (
  program: StepProgram,
  { groups, priceKernel, collectives }: HalvesRebucketing,
): StepProgram => {
  const places = new Map(
    [...placesByBucket(program)].map(([bucket, own]) => [bucket, halvesOfBucket(program, bucket, own)]),
  );
  checkGroups(groups, places.keys());
  const all = [...places.values()].flatMap(({ gather, scatter }) => [gather, scatter]);
  const removed = new Set(all.flatMap(({ before, start, wait, after }) => [...before, start, wait, ...after]));
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void =>
    void inserted.set(index, [...(inserted.get(index) ?? []), ...added]);
  const kernels = (lists: readonly (readonly number[])[]): KernelStep[] =>
    zipped(
      lists.map((list) => list.map((index) => program[index] as KernelStep)),
      priceKernel,
    );
  /** @param startAt where the message of several leaves: with the first of them, or with the last. */
  const place = (halves: readonly Half[], startAt: (...places: number[]) => number): void => {
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
    const own = group.map((bucket) => places.get(bucket)!);
    place(
      own.map(({ gather }) => gather),
      Math.min,
    );
    place(
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
