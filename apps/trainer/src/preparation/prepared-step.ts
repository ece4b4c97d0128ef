import { ConfigError } from "@skein/cli/node";
import type { PreparedGraph } from "@skein/cost-model/pricing";
import { prepareForCpu } from "@skein/cpu-kernels";
import { type DeviceFacts, type ListedShader, planForWebGpu, prepareForWebGpu, shadersOf } from "@skein/gpu-kernels";
import { firstCoordinates, type Job, samplesAtOnce } from "@skein/job/node";
import {
  accumulate,
  batchSpecs,
  buildParts,
  deferredPart,
  type ExchangePlan,
  lookAhead,
  numUpdateFigures,
  type Parts,
  type PassAhead,
  passesFor,
  resultSpecs,
  stateSpecs,
  stepKindAt,
  stepOverParts,
  type TrainState,
  trainStep,
} from "@skein/step/node";
import { ArgumentError, flattenTree, type Graph, type Tensor, type TensorSpec, trace } from "@skein/tensor-core";
import { type MemoryPlan, planMemory, recomputeWithin } from "@skein/tensor-core/backend";
import { partsInputOf, type Prepared } from "./prepared.ts";

/** Graph of a training step as compiled by a backend, with its memory plan. */
export interface PreparedStep extends PreparedGraph {
  readonly plan: MemoryPlan;
  /** Number of graph inputs that are state. The remaining inputs are the batch. */
  readonly stateInputs: number;
}

/**
 * Traces the graph of one training step on one rank's share of a batch.
 *
 * @param step Step number, from 0. Graphs of different steps can differ, because a compressor may alternate between two
 * methods.
 * @param part Microbatch to trace, the first or the last, if the batch is split into microbatches. Absent: the complete
 * batch.
 */
const tracedStep = (
  parts: Parts,
  { job, data }: Pick<Prepared, "job" | "data">,
  state: TrainState<TensorSpec>,
  { step, part }: { readonly step: number; readonly part: "first" | "last" | undefined },
): Graph => {
  const batch = batchSpecs(data.train, samplesAtOnce(job));
  const kind = stepKindAt(parts, step);
  const isDeferred = parts.overlap === "dear" && parts.accumulate > 1;
  const first = deferredPart(parts, { ...kind, compressor: parts.compressorAt(0) });
  const on = { mesh: parts.mesh, place: firstCoordinates(parts.mesh) };
  const specsOf = <Specs>(fn: unknown, ...args: readonly unknown[]): Specs =>
    resultSpecs<Specs>(trace(fn as (...args: Tensor[]) => unknown, args as never, on));
  const ofPart = (): { readonly wholeBatch: unknown; readonly before: unknown } => {
    const { rankCount, model } = specsOf<PassAhead<TensorSpec>>(lookAhead(parts), state, batch);
    const wholeBatch = { rankCount, model };
    const update: TensorSpec = { dtype: "f32", shape: [numUpdateFigures(parts)] };
    const before = specsOf<object>(accumulate(parts, kind.mode), state, batch, { wholeBatch });
    return { wholeBatch, before: { ...before, ...(isDeferred && { update }) } };
  };
  const argsOf = {
    first: () => [first, batch, { wholeBatch: ofPart().wholeBatch }],
    last: () => [trainStep(parts, kind), batch, ofPart()],
    all: () => [stepOverParts(parts, kind), ...Array<unknown>(parts.accumulate).fill(batch)],
  };
  const [fn, ...args] = argsOf[part ?? "all"]();
  const traced = trace(fn as (...args: Tensor[]) => unknown, [state, ...args] as never, on);
  return passesFor(job).reduce((graph, pass) => pass(graph), traced.graph);
};

/**
 * Returns a graph that recomputes values so that its memory does not exceed the job's limit, as jit does before a
 * backend compiles a graph. Returns the graph unchanged if the job has no limit.
 *
 * @throws ConfigError if the limit cannot be met.
 */
const withinBound = ({ memory }: Job, graph: Graph, workspaceBytes: (graph: Graph) => number): Graph => {
  if (memory.maxBytes === undefined) return graph;
  try {
    return recomputeWithin(graph, { maxBytes: memory.maxBytes, workspaceBytes }).graph;
  } catch (error) {
    if (error instanceof ArgumentError) throw new ConfigError([`memory.maxBytes: ${error.message}`]);
    throw error;
  }
};

interface TraceOptions {
  readonly plan?: ExchangePlan | undefined;
  readonly step?: number;
  readonly part?: "first" | "last" | undefined;
}

/**
 * Traces the step of a job. The returned functions prepare the graph for a backend.
 *
 * @throws ConfigError if a backend's memory plan exceeds `memory.maxBytes`.
 * @param plan Plan for jobs whose gradient exchange or token routing is planned from measurements or costs. Default:
 * one bucket per tensor, and tokens sent directly to their experts in one chunk.
 * @param part Microbatch to trace, the first or the last, if the batch is split into microbatches. The graph of each
 * microbatch is compiled separately, with bounded memory. Default: all microbatches in one graph, which shows the
 * computation of a step but not its memory use.
 */
export const traceStep = (
  prepared: Prepared,
  { plan, step = prepared.totalSteps - 1, part }: TraceOptions = {},
): {
  onCpu(): PreparedStep;
  onWebGpu(facts: DeviceFacts): PreparedStep;
  shaders(facts: DeviceFacts): readonly ListedShader[];
} => {
  const { job } = prepared;
  const parts = buildParts(partsInputOf(prepared, plan), plan);
  const state = stateSpecs(parts);
  const inParts = parts.accumulate > 1;
  const graph = tracedStep(parts, prepared, state, { step, part: inParts ? part : undefined });
  const stateInputs = flattenTree<TensorSpec>(state).leaves.length;
  const donate = Array.from({ length: stateInputs }, (_, i) => i);
  const bounded = (prepare: (graph: Graph) => Graph, planOf: (ready: Graph) => MemoryPlan): Graph =>
    inParts && part === undefined ? graph : withinBound(job, graph, (one) => planOf(prepare(one)).workspaceBytes);
  const planned = (prepare: (graph: Graph) => Graph, planOf: (ready: Graph) => MemoryPlan): PreparedStep => {
    const ready = prepare(bounded(prepare, planOf));
    const memory = planOf(ready);
    return { graph: ready, plan: memory, settled: memory.settled, stateInputs };
  };
  const webGpu = (facts: DeviceFacts) =>
    [(one: Graph) => prepareForWebGpu(one, facts), (ready: Graph) => planForWebGpu(ready, facts, donate)] as const;
  return {
    onCpu: () => planned(prepareForCpu, (ready) => planMemory(ready, { donate })),
    onWebGpu: (facts) => planned(...webGpu(facts)),
    shaders: (facts) => shadersOf(bounded(...webGpu(facts)), facts, { donate }),
  };
};

/**
 * Prepares the graph of a job's step for the CPU or, if `device` is given, for a WebGPU device.
 *
 * @param alone Whether to return only the graph of the microbatch that needs the most memory, if the batch is split
 * into microbatches.
 */
export const prepareStep = (
  prepared: Prepared,
  device: DeviceFacts | undefined,
  { alone = false, ...options }: Omit<TraceOptions, "part"> & { readonly alone?: boolean } = {},
): PreparedStep => {
  const ofPart = (part: TraceOptions["part"]): PreparedStep => {
    const step = traceStep(prepared, { ...options, part });
    return device === undefined ? step.onCpu() : step.onWebGpu(device);
  };
  if (!alone) return ofPart(undefined);
  const last = ofPart("last");
  const { overlap, accumulate: numParts = 1 } = prepared.job;
  if (overlap !== "dear" || numParts === 1) return last;
  const first = ofPart("first"); // the first part includes the update
  return first.plan.workspaceBytes > last.plan.workspaceBytes ? first : last;
};
