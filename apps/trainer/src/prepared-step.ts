import type { PreparedGraph } from "@skein/cost-model";
import { prepareForCpu } from "@skein/cpu-kernels";
import { type DeviceFacts, planForWebGpu, prepareForWebGpu } from "@skein/gpu-kernels";
import { flattenTree, type Graph, type Tensor, type TensorSpec, trace } from "@skein/tensor-core";
import { type MemoryPlan, planMemory } from "@skein/tensor-core/backend";
import { passesFor } from "./compiled-steps.ts";
import type { ExchangePlan } from "./planning/exchange-plan.ts";
import type { Prepared } from "./prepare.ts";
import { buildParts, type Parts, stateSpecs } from "./train-state.ts";
import { trainStep } from "./train-step.ts";

/** A training step as a backend runs it. */
export interface PreparedStep extends PreparedGraph {
  readonly plan: MemoryPlan;
  /** Inputs of the graph that are the state; those after them are the batch. */
  readonly stateInputs: number;
}

/**
 * The graph of one training step on one rank's part of a batch, as it is traced.
 *
 * @param step which one, from 0: compressors may take turns.
 */
const tracedStep = (
  parts: Parts,
  { job, data }: Pick<Prepared, "job" | "data">,
  state: unknown,
  step: number,
): Graph => {
  const batch = Object.fromEntries(
    Object.entries(data.train.fields).map(([name, { dtype, shape }]) => [
      name,
      { dtype, shape: [job.batch / job.ranks, ...shape] },
    ]),
  );
  const traced = trace(
    trainStep(parts, parts.compressorAt(step)) as unknown as (...args: Tensor[]) => unknown,
    [state as never, batch as never],
    { mesh: parts.mesh },
  );
  return passesFor(job).reduce((graph, pass) => pass(graph), traced.graph);
};

/**
 * Trace the step of a job; what the backends make of it is asked for apart.
 *
 * @param plan where the exchange follows from measurements, or from prices. Default: what such a job begins with, each
 * tensor by itself.
 */
export const traceStep = (
  prepared: Prepared,
  { plan, step = prepared.totalSteps - 1 }: { readonly plan?: ExchangePlan | undefined; readonly step?: number } = {},
): { onCpu(): PreparedStep; onWebGpu(facts: DeviceFacts): PreparedStep } => {
  const { job, model, totalSteps } = prepared;
  const parts = buildParts(job, model, totalSteps, plan);
  const state = stateSpecs(parts);
  const graph = tracedStep(parts, prepared, state, step);
  const stateInputs = flattenTree<TensorSpec>(state).leaves.length;
  const donate = Array.from({ length: stateInputs }, (_, i) => i);
  const withPlan = (ready: Graph, plan: MemoryPlan): PreparedStep => ({
    graph: ready,
    plan,
    settled: plan.settled,
    stateInputs,
  });
  return {
    onCpu: (): PreparedStep => {
      const ready = prepareForCpu(graph);
      return withPlan(ready, planMemory(ready, { donate }));
    },
    onWebGpu: (facts): PreparedStep => {
      const ready = prepareForWebGpu(graph, facts);
      return withPlan(ready, planForWebGpu(ready, facts, donate));
    },
  };
};
