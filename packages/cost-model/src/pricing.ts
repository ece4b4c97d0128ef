// Entry point for predicted times of a graph's kernels and collectives, and for programs of training steps.
export {
  type CollectivePrice,
  type CollectivePricer,
  collectivePricer,
  collectivePricers,
} from "./pricing/collective-price.ts";
export { type Basis, efficiencyLookup } from "./pricing/efficiency.ts";
export { type KernelPrice, type KernelPricer, kernelPricer, nodeWork } from "./pricing/kernel-price.ts";
export {
  computeSeconds,
  isKernel,
  isStart,
  type KernelStep,
  type PreparedGraph,
  type StartStep,
  type StepHardware,
  type StepProgram,
  stepProgram,
  type WaitStep,
} from "./pricing/step-program.ts";
export { kernelsDuringCollectives, overlapsOf } from "./pricing/overlaps.ts";
export { bucketOfScope } from "./pricing/exchange-steps.ts";
export { codecSeconds, type PricedExchange, pricedExchange, sentBytesOf } from "./pricing/priced-exchange.ts";
export { foldKernels } from "./pricing/fold-kernels.ts";
export { type HalvesRebucketing, rebucketHalves } from "./pricing/rebucket-halves.ts";
export { reprice } from "./pricing/reprice.ts";
export { rebucket, type Rebucketing } from "./pricing/rebucket.ts";
export { type GroupExchange, withExchanges } from "./pricing/with-exchanges.ts";
export { stepTasks } from "./pricing/step-tasks.ts";
