import { elementCount, InvariantError } from "@skein/tensor-core";
import { specOf } from "@skein/tensor-core/backend";
import type { Work } from "../hardware/roofline.ts";
import { type KernelPricer, kernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps } from "./linked-steps.ts";
import { type KernelStep, type PreparedGraph, type StepHardware, stepProgram } from "./step-program.ts";

/** Steps that exchange the gradients of one bucket, with their predicted times, independent of other buckets. */
export interface PricedExchange {
  /**
   * Rounds of messages. Each round contains waits and kernels, then the starts of one or more messages. The first round
   * has no waits.
   */
  readonly rounds: readonly (readonly FreeStep[])[];
  /** Kernels that do not depend on messages, such as kernels that store residuals. */
  readonly independent: readonly FreeStep[];
  /** Waits for the last messages, and kernels that decode these messages. */
  readonly after: readonly FreeStep[];
}

/**
 * Returns a kernel's step with a predicted time that excludes one part of the kernel's work: the f32 addition of the
 * mean gradient to another tensor. Undefined if the kernel does nothing else.
 */
const withoutAddition = (step: KernelStep, elements: number, price: KernelPricer): KernelStep | undefined => {
  const adding: Work = { flops: elements, bytes: 12 * elements };
  const rest: Work = {
    flops: Math.max(0, step.price.flops - adding.flops),
    bytes: Math.max(0, step.price.bytes - adding.bytes),
  };
  return rest.bytes === 0 ? undefined : { ...step, price: price(step.operator, rest) };
};

/**
 * Predicts the times of the exchange of one bucket from a graph that contains only this exchange.
 *
 * @param prepared Graph whose first output is another tensor plus the mean gradient, f32. The addition represents the
 * kernel that reads the mean in a real step, because backends fuse the exchange with this kernel if possible. The
 * predicted times do not include the addition.
 * @throws InvariantError if the graph has no messages.
 */
export const pricedExchange = (prepared: PreparedGraph, hardware: StepHardware): PricedExchange => {
  const { graph } = prepared;
  const [sum] = graph.outputs;
  const elements = elementCount(specOf(graph, sum!).shape);
  const price = kernelPricer(hardware.device);
  const steps = freeSteps(stepProgram(prepared, hardware)).flatMap((step): FreeStep[] => {
    if (step.kind !== "kernel" || step.node !== sum!.node) return [step];
    const rest = withoutAddition(step, elements, price);
    return rest === undefined ? [] : [rest];
  });
  const lastStart = steps.findLastIndex((step) => step.kind === "start");
  if (lastStart === -1) throw new InvariantError("pricedExchange got a graph without messages; its group has one rank");
  const rounds: FreeStep[][] = [[]];
  for (const step of steps.slice(0, lastStart + 1)) {
    const round = rounds.at(-1)!;
    if (step.kind === "wait" && round.some((one) => one.kind === "start")) rounds.push([step]);
    else round.push(step);
  }
  const rest = steps.slice(lastStart + 1);
  const firstWait = rest.findIndex((step) => step.kind === "wait");
  return { rounds, independent: rest.slice(0, firstWait), after: rest.slice(firstWait) };
};

/**
 * Copies an exchange for use with another bucket. The copy has new starts, and its names contain the bucket's number.
 */
export const exchangeOfBucket = (
  { rounds, independent, after }: PricedExchange,
  bucket: number,
  priority: number,
): PricedExchange => {
  const renamed = (text: string): string => text.replace("exchange-0", `exchange-${bucket}`);
  const own = new Map(
    rounds.flat().flatMap((step) => {
      if (step.kind !== "start") return [];
      const args = { ...step.args, ...(step.args.scope !== undefined && { scope: renamed(step.args.scope) }) };
      return [[step, { ...step, name: renamed(step.name), scope: renamed(step.scope), args, priority }]] as const;
    }),
  );
  const copied = (steps: readonly FreeStep[]): FreeStep[] =>
    steps.map((step) => {
      if (step.kind === "kernel") return step;
      if (step.kind === "start") return own.get(step)!;
      const of = own.get(step.of)!;
      return { kind: "wait", step: { ...step.step, name: of.name, scope: of.scope, args: of.args }, of };
    });
  return { rounds: rounds.map(copied), independent: copied(independent), after: copied(after) };
};

/** Returns the seconds of the kernels of an exchange: packing, encoding, decoding, and storing residuals. */
export const codecSeconds = ({ rounds, independent, after }: PricedExchange): number =>
  [...rounds.flat(), ...independent, ...after].reduce(
    (sum, step) => sum + (step.kind === "kernel" ? step.price.seconds : 0),
    0,
  );

/** Returns the number of bytes that a rank sends in an exchange. */
export const sentBytesOf = ({ rounds }: PricedExchange): number =>
  rounds.flat().reduce((sum, step) => sum + (step.kind === "start" ? step.price.sentBytes : 0), 0);
