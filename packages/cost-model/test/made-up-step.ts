import { type CollectivePricer, collectivePricer } from "../src/pricing/collective-price.ts";
import { type KernelPricer, kernelPricer } from "../src/pricing/kernel-price.ts";
import type { StepProgram } from "../src/pricing/step-program.ts";
import { stepTasks } from "../src/pricing/step-tasks.ts";
import { simulate } from "../src/simulation/simulate.ts";
import { madeUpDevice } from "./made-up-device.ts";

const device = madeUpDevice({ kernelStartSeconds: 1e-5, assumedEfficiency: 1 });
const priceKernel = kernelPricer(device);
const worldSize = 3;
const collectives = { data: collectivePricer({ worldSize, sharesMemory: false }) };

/** A tensor of a made-up step, with the flops of its backward pass and the bytes of its gradient. */
export interface MadeUpTensor {
  readonly flops: number;
  readonly bytes: number;
}

/**
 * Returns a step that exchanges each tensor separately, with an encoding kernel and a decoding kernel, and also
 * exchanges the loss.
 */
const programOf = (tensors: readonly MadeUpTensor[], encodes = true): StepProgram => {
  const program: StepProgram[number][] = [];
  const kernel = (operator: string, scope: string, flops: number, bytes: number): void => {
    const price = priceKernel(operator, { flops, bytes });
    program.push({ kind: "kernel", node: 0, name: `${operator} ${scope}`, scope, args: {}, operator, price });
  };
  const start = (scope: string, bytes: number): void => {
    const price = collectives.data("all-reduce", bytes);
    program.push({
      kind: "start",
      node: 0,
      name: `all-reduce ${scope}`,
      scope,
      args: {},
      collective: "all-reduce",
      axis: "data",
      bytes,
      price,
    });
  };
  const wait = (scope: string): void => {
    const at = program.findIndex((step) => step.kind === "start" && step.scope === scope);
    program.push({ kind: "wait", node: 0, name: `all-reduce ${scope}`, scope, args: {}, start: at });
  };
  start("mean-loss", 4);
  for (const [i, { flops, bytes }] of tensors.entries()) {
    kernel("matmul", "layer/backward", flops, 0);
    if (encodes) kernel("quantize", `exchange-${i}`, 0, bytes);
    start(`exchange-${i}`, bytes);
  }
  wait("mean-loss");
  for (const [i, { bytes }] of tensors.entries()) {
    wait(`exchange-${i}`);
    if (encodes) kernel("restore", `exchange-${i}`, 0, bytes);
    kernel("fused", "update", 0, bytes);
  }
  return program;
};

const secondsOf = (program: StepProgram): number => {
  const tasks = stepTasks(program);
  return simulate({ programs: [tasks, tasks, tasks], groups: { data: [[0, 1, 2]] } }, { spans: false }).stepSeconds;
};
/** For tests: builds steps of three ranks that exchange made-up tensors. */
export const madeUpStep: {
  readonly programOf: (tensors: readonly MadeUpTensor[], encodes?: boolean) => StepProgram;
  readonly secondsOf: (program: StepProgram) => number;
  readonly priceKernel: KernelPricer;
  readonly collectives: { readonly data: CollectivePricer };
} = { programOf, secondsOf, priceKernel, collectives };
