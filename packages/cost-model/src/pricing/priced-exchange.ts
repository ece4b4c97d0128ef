import { elementCount, InvariantError } from "@skein/tensor-core";
import { specOf } from "@skein/tensor-core/backend";
import type { Work } from "../hardware/roofline.ts";
import { type KernelPricer, kernelPricer } from "./kernel-price.ts";
import { type FreeStep, freeSteps } from "./linked-steps.ts";
import { type KernelStep, type PreparedGraph, type StepHardware, stepProgram } from "./step-program.ts";

/** What exchanging the gradients of one bucket takes, by itself. */
export interface PricedExchange {
  /** Each what is computed, and waited for, before some messages, and these; the first waits for nothing. */
  readonly rounds: readonly (readonly FreeStep[])[];
  /** What needs no message: residuals. */
  readonly beside: readonly FreeStep[];
  /** Waits for the last messages, and what decodes them. */
  readonly after: readonly FreeStep[];
}

/** What a kernel does beside adding the mean to another tensor; undefined where that is all. */
const besideAdding = (step: KernelStep, elements: number, price: KernelPricer): KernelStep | undefined => {
  const adding: Work = { flops: elements, bytes: 12 * elements };
  const rest: Work = {
    flops: Math.max(0, step.price.flops - adding.flops),
    bytes: Math.max(0, step.price.bytes - adding.bytes),
  };
  return rest.bytes === 0 ? undefined : { ...step, price: price(step.operator, rest) };
};

/**
 * Price the exchange of one bucket, traced by itself.
 *
 * @param prepared a graph whose first output is another tensor plus the mean gradient, f32: the sum stands for what
 * will read the mean, which backends make one kernel of where they can, and is taken off.
 * @throws InvariantError for a graph without messages.
 */
export const pricedExchange = (prepared: PreparedGraph, hardware: StepHardware): PricedExchange => {
  const { graph } = prepared;
  const [sum] = graph.outputs;
  const elements = elementCount(specOf(graph, sum!).shape);
  const price = kernelPricer(hardware.device);
  const steps = freeSteps(stepProgram(prepared, hardware)).flatMap((step): FreeStep[] => {
    if (step.kind !== "kernel" || step.node !== sum!.node) return [step];
    const rest = besideAdding(step, elements, price);
    return rest === undefined ? [] : [rest];
  });
  const lastStart = steps.findLastIndex((step) => step.kind === "start");
  if (lastStart === -1) throw new InvariantError("an exchange without messages was given; its group has one rank");
  const rounds: FreeStep[][] = [[]];
  for (const step of steps.slice(0, lastStart + 1)) {
    const round = rounds.at(-1)!;
    if (step.kind === "wait" && round.some((one) => one.kind === "start")) rounds.push([step]);
    else round.push(step);
  }
  const rest = steps.slice(lastStart + 1);
  const firstWait = rest.findIndex((step) => step.kind === "wait");
  return { rounds, beside: rest.slice(0, firstWait), after: rest.slice(firstWait) };
};

/** The same steps for one bucket of many: starts of its own, named after it. */
export const exchangeOfBucket = (
  { rounds, beside, after }: PricedExchange,
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
  return { rounds: rounds.map(copied), beside: copied(beside), after: copied(after) };
};

/** Seconds of the kernels of an exchange: packing, encoding, decoding, and keeping what was not sent. */
export const codecSeconds = ({ rounds, beside, after }: PricedExchange): number =>
  [...rounds.flat(), ...beside, ...after].reduce(
    (sum, step) => sum + (step.kind === "kernel" ? step.price.seconds : 0),
    0,
  );

/** What a rank sends. */
export const sentBytesOf = ({ rounds }: PricedExchange): number =>
  rounds.flat().reduce((sum, step) => sum + (step.kind === "start" ? step.price.sentBytes : 0), 0);
