import { ArgumentError } from "@skein/tensor-core";
import type { CollectivePricer } from "./collective-price.ts";
import type { KernelPricer } from "./kernel-price.ts";
import type { KernelStep, StartStep, StepProgram, WaitStep } from "./step-program.ts";

type Step = StepProgram[number];

/** What a bucket's exchange is made of: kernels that pack and encode, a message, kernels that decode; their places in the program. */
interface Exchange {
  readonly encode: readonly number[];
  readonly start: number;
  readonly wait: number;
  readonly decode: readonly number[];
}

/** The scope of bucket i's exchange, as jobs trace it. */
const exchangeScope = /^exchange-(\d+)(?:\/|$)/;

/** The exchanges of a program that was made with one message for each bucket, by bucket. @throws ArgumentError where a bucket has none, or several. */
const exchangesOf = (program: StepProgram): ReadonlyMap<number, Exchange> => {
  const buckets = Map.groupBy(
    program.flatMap(({ scope }, index) => {
      const found = exchangeScope.exec(scope);
      return found === null ? [] : [{ bucket: Number(found[1]), index }];
    }),
    ({ bucket }) => bucket,
  );
  return new Map(
    [...buckets].map(([bucket, places]) => {
      const own = places.map(({ index }) => index);
      const starts = own.filter((index) => program[index]!.kind === "start");
      const waits = own.filter((index) => program[index]!.kind === "wait");
      const [start, wait] = [starts[0], waits[0]];
      if (starts.length !== 1 || waits.length !== 1 || start === undefined || wait === undefined)
        throw new ArgumentError(
          `bucket ${bucket} is exchanged by ${starts.length} collectives; only exchanges of one message can be bucketed anew: price this compression with each plan by itself`,
        );
      const kernels = own.filter((index) => program[index]!.kind === "kernel");
      return [bucket, { encode: kernels.filter((index) => index < start), start, wait, decode: kernels.filter((index) => index > wait) }];
    }),
  );
};

/** One kernel for several that do the same to parts: their work together, one start. */
const merged = (kernels: readonly KernelStep[], price: KernelPricer): KernelStep => {
  const [first] = kernels as [KernelStep];
  const work = kernels.reduce((sum, { price: own }) => ({ flops: sum.flops + own.flops, bytes: sum.bytes + own.bytes }), {
    flops: 0,
    bytes: 0,
  });
  return { ...first, price: price(first.operator, work) };
};

/** The k-th kernels of several lists, merged; what only some have is merged of those. */
const zipped = (lists: readonly (readonly KernelStep[])[], price: KernelPricer): KernelStep[] => {
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
  readonly priceKernel: KernelPricer;
  /** By axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * Make of a step that exchanges each tensor by itself, beside computation, the step that exchanges groups of them: each group is packed and sent when its
 * last gradient is ready, waited for where its first result is needed, and its kernels are priced as one of all their work. Without overlap, messages
 * go one after the other once all gradients are there, and the step's other collectives are waited for where they start.
 *
 * What it leaves out: copies into a bucket, which backends avoid by laying gradients side by side.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError for groups that do not hold every bucket once, or whose results are needed too early, or a compression of several messages.
 */
export const rebucket = (program: StepProgram, { groups, overlap, priceKernel, collectives }: Rebucketing): StepProgram => {
  const exchanges = exchangesOf(program);
  const named = groups.flat();
  if (named.length !== exchanges.size || new Set(named).size !== named.length || named.some((bucket) => !exchanges.has(bucket)))
    throw new ArgumentError(
      `groups hold the buckets [${named.toSorted((a, b) => a - b).join(", ")}], but the program has [${[...exchanges.keys()].join(", ")}]; each belongs to one group`,
    );
  const kernelsAt = (places: readonly number[]): KernelStep[] => places.map((index) => program[index] as KernelStep);
  const removed = new Set([...exchanges.values()].flatMap(({ encode, start, wait, decode }) => [...encode, start, wait, ...decode]));
  const others = program.flatMap((step, index) =>
    step.kind === "wait" && !removed.has(index) ? [{ wait: index, start: step.start }] : [],
  );
  /** What comes in place of the step at an index, or before the step that stands there. */
  const inserted = new Map<number, Step[]>();
  const insert = (index: number, steps: readonly Step[]): void => void inserted.set(index, [...(inserted.get(index) ?? []), ...steps]);
  const firstWait = Math.min(...[...exchanges.values()].map(({ wait }) => wait));
  for (const group of groups) {
    const own = group.map((bucket) => exchanges.get(bucket)!);
    const starts = own.map(({ start }) => program[start] as StartStep);
    const [first] = starts as [StartStep];
    const bytes = starts.reduce((sum, start) => sum + start.bytes, 0);
    const start: StartStep = { ...first, bytes, price: collectives[first.axis]!(first.collective, bytes) };
    const waitAt = Math.min(...own.map(({ wait }) => wait));
    const wait = program[own[0]!.wait] as WaitStep;
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
  if (overlap === "none")
    for (const { wait, start } of others) {
      removed.add(wait);
      insert(start + 1, [program[wait]!]);
    }
  const steps = program.flatMap((step, index): Step[] => [...(inserted.get(index) ?? []), ...(removed.has(index) ? [] : [step])]);
  // Waits name their starts by places, which have moved.
  const startOf = new Map<string, number>();
  return steps.map((step, index): Step => {
    if (step.kind === "start") startOf.set(step.name, index);
    return step.kind === "wait" ? { ...step, start: startOf.get(step.name)! } : step;
  });
};
