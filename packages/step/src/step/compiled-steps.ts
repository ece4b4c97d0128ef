import type { Job } from "@skein/job/node";
import type { BucketPlan } from "@skein/tensor-core";
import { isGateNode } from "@skein/moe-parallel";
import {
  type Backend,
  blockOnCollectives,
  type Communicators,
  type DeviceArray,
  flattenTree,
  type Graph,
  jit,
  type JitOptions,
  mapTree,
  mixedPrecision,
  NdArray,
  randomKey,
  type SpanSink,
  type Tensor,
} from "@skein/tensor-core";
import {
  accumulate,
  type Accumulated,
  lookAhead,
  needsWhole,
  type PassAhead,
  type StepInputs,
} from "./loss-and-gradients.ts";
import { deferredPart, settle, type Settled } from "./deferred-step.ts";
import type { WholeBatch } from "./scaled-gradients.ts";
import { exchangedGradients } from "./exchanged-gradients.ts";
import { type CurvatureMode, modeNames } from "../building/curvature.ts";
import type { BatchTree } from "../task/task.ts";
import {
  type DeviceState,
  initExchangeState,
  type Parts,
  type StepKind,
  stepKindAt,
  type TrainState,
  withBuckets,
} from "./train-state.ts";
import { trainStep } from "./train-step.ts";

export interface DeviceResult {
  readonly state: DeviceState;
  readonly loss: DeviceArray;
  readonly finite: DeviceArray;
  readonly update: DeviceArray;
  readonly skipped: DeviceArray;
  readonly figures: DeviceArray | readonly [];
}

type Batch = object;

/**
 * A compiled program that computes one microbatch. Its arguments are the state, the microbatch, and the fields of
 * `StepInputs`.
 */
type CompiledPart<Result> = ((
  state: DeviceState,
  batch: Batch,
  wholeBatch: WholeBatch<DeviceArray>,
  before?: Accumulated<DeviceArray>,
) => Promise<Result>) & { release(): void };

type LookAhead = ((
  state: DeviceState,
  batch: Batch,
  before?: PassAhead<DeviceArray>,
) => Promise<PassAhead<DeviceArray>>) & {
  release(): void;
};

/** Placeholder without values of the whole batch, for a batch that is not split into microbatches. */
const noWholeBatchFacts: WholeBatch<DeviceArray> = { rankCount: [], model: [] };

export interface StepsInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  readonly spanSink?: SpanSink | undefined;
}

/**
 * Returns the graph passes that rewrite a traced step of a job before a backend compiles the step. Gradient exchange,
 * expert choice and weight updates remain in f32.
 */
export const passesFor = ({ precision, overlap }: Job): ((graph: Graph) => Graph)[] => [
  ...(precision.kind === "f32"
    ? []
    : [
        (graph: Graph) =>
          mixedPrecision(graph, {
            dtype: precision.kind === "mixed-bf16" ? "bf16" : "f16",
            keeps: (origin) => origin.phase === "communication" || origin.phase === "update" || isGateNode(origin),
          }),
      ]),
  ...(overlap === "none" ? [blockOnCollectives] : []),
];

/**
 * Compiled program for the first microbatch, which also applies the update of the previous step. Consumes the state.
 */
type DeferredPart = CompiledPart<{ readonly state: DeviceState; readonly before: Accumulated<DeviceArray> }>;

type Settle = ((state: DeviceState) => Promise<Settled<DeviceState, DeviceArray>>) & { release(): void };

/** Splits a rank's batch into microbatches of equal size, in order. The microbatches are views. */
const partsOf = (batch: Batch, numParts: number): Batch[] =>
  numParts === 1
    ? [batch]
    : Array.from({ length: numParts }, (_, part) =>
        mapTree(batch, (field: NdArray) => {
          const [length, elements] = [field.shape[0]! / numParts, field.data.length / numParts];
          const values = field.data.subarray(part * elements, (part + 1) * elements);
          return new NdArray(field.dtype, [length, ...field.shape.slice(1)], values);
        }),
      );

/**
 * Returns the curvature mode of all microbatches except the last: "observe", which updates statistics only, or "keep".
 */
const observed = (mode: CurvatureMode): CurvatureMode => (mode === "keep" ? "keep" : "observe");

/** Runs the compiled program of a microbatch. The argument `before` is omitted if it is undefined. */
const withBefore = <Result>(
  run: CompiledPart<Result>,
  state: DeviceState,
  part: Batch,
  wholeBatch: WholeBatch<DeviceArray>,
  before: Accumulated<DeviceArray> | undefined,
): Promise<Result> => (before === undefined ? run(state, part, wholeBatch) : run(state, part, wholeBatch, before));

/** Maximum number of cached compiled steps, enough for alternating compressors, with and without curvature. */
const keptSteps = 6;

/** Compiled steps of a run, one per step kind, compiled when first needed. */
export class CompiledSteps {
  private parts: Parts;
  private readonly job: Job;
  private readonly backend: Backend;
  private readonly options: JitOptions;
  /** Compiled steps, least recently used first. */
  private readonly steps: { readonly kind: StepKind; readonly run: CompiledPart<DeviceResult> }[] = [];
  private settling: Settle;
  /** Compiled programs for the first of several microbatches with `overlap: dear`, by curvature mode. */
  private readonly catchingUp = new Map<CurvatureMode, DeferredPart>();
  /** Compiled programs for all microbatches except the last, by curvature mode. */
  private readonly accumulating = new Map<CurvatureMode, CompiledPart<Accumulated<DeviceArray>>>();
  private readonly lookAheadPass: LookAhead;
  /** Whether the computation of a microbatch needs values of the whole batch, such as the number of unmasked rows. */
  private needsLookAhead: boolean;
  /** Compiled program for `gradients`. Undefined: not requested yet. */
  private gradientsOf: { readonly compressor: StepKind["compressor"]; readonly run: CompiledPart<unknown> } | undefined;

  constructor({ job, parts, backend, communicators, spanSink }: StepsInput) {
    this.parts = parts;
    this.job = job;
    this.backend = backend;
    this.options = {
      donate: [0],
      mesh: parts.mesh,
      communicators,
      passes: passesFor(job),
      ...(spanSink && { spanSink }),
    };
    this.settling = this.compileSettle();
    this.needsLookAhead = parts.accumulate > 1;
    this.lookAheadPass = jit(lookAhead(parts), backend, {
      ...this.options,
      ...this.bound,
      donate: [2],
      name: "look ahead at a train step",
    }) as unknown as LookAhead;
  }

  /** Memory limit for the intermediate values of each compiled step. Empty: no limit. */
  private get bound(): Pick<JitOptions, "maxWorkspaceBytes"> {
    const { maxBytes } = this.job.memory;
    return maxBytes === undefined ? {} : { maxWorkspaceBytes: maxBytes };
  }

  private compileSettle(): Settle {
    return jit(settle(this.parts, this.parts.compressorAt(0)), this.backend, {
      ...this.options,
      name: "settle",
    }) as unknown as Settle;
  }

  private compile<Result>(
    fn: (state: TrainState<Tensor>, batch: BatchTree, inputs: StepInputs<Tensor>) => unknown,
    { donate, name }: { readonly donate: readonly number[]; readonly name: string },
  ): CompiledPart<Result> {
    const partFunction = (
      state: TrainState<Tensor>,
      batch: BatchTree,
      wholeBatch: WholeBatch<Tensor>,
      before?: Accumulated<Tensor>,
    ): unknown => fn(state, batch, { wholeBatch, ...(before !== undefined && { before }) });
    return jit(partFunction as never, this.backend, {
      ...this.options,
      ...this.bound,
      donate,
      name,
    }) as unknown as CompiledPart<Result>;
  }

  private catchUp(kind: StepKind): DeferredPart {
    const mode = observed(kind.mode);
    const compiled =
      this.catchingUp.get(mode) ??
      this.compile(deferredPart(this.parts, { ...kind, mode }), { donate: [0], name: "first part of a train step" });
    this.catchingUp.set(mode, compiled as DeferredPart);
    return compiled as DeferredPart;
  }

  private accumulate(kind: StepKind): CompiledPart<Accumulated<DeviceArray>> {
    const mode = observed(kind.mode);
    const compiled =
      this.accumulating.get(mode) ??
      this.compile<Accumulated<DeviceArray>>(accumulate(this.parts, mode), {
        donate: [3],
        name: "part of a train step",
      });
    this.accumulating.set(mode, compiled);
    return compiled;
  }

  /** Computes the values of the whole batch that the computation of each microbatch needs. */
  private async lookAhead(state: DeviceState, inParts: readonly Batch[]): Promise<WholeBatch<DeviceArray>> {
    if (!this.needsLookAhead) return noWholeBatchFacts;
    let passed: PassAhead<DeviceArray> | undefined;
    for (const part of inParts) {
      passed = await (passed === undefined ? this.lookAheadPass(state, part) : this.lookAheadPass(state, part, passed));
      this.needsLookAhead = "dtype" in passed.rankCount || needsWhole(this.parts);
      if (!this.needsLookAhead) break;
    }
    const { parts, ...wholeBatch } = passed!;
    this.backend.free(parts);
    return wholeBatch;
  }

  /** Runs a step. Consumes the state. @param updates Number of updates made before the step. */
  async run(updates: number, state: DeviceState, batch: Batch): Promise<DeviceResult> {
    const kind = stepKindAt(this.parts, updates);
    const index = this.steps.findIndex(
      (step) => step.kind.compressor === kind.compressor && step.kind.mode === kind.mode,
    );
    const step = index < 0 ? { kind, run: this.compileStep(kind) } : this.steps.splice(index, 1)[0]!;
    this.steps.push(step);
    if (this.steps.length > keptSteps) this.steps.shift()!.run.release();
    return this.inParts(step.run, kind, state, batch, this.parts.overlap === "dear");
  }

  /**
   * Computes the microbatches of a batch one after the other, and the last microbatch with `run`.
   *
   * @param catchesUp Whether the first of several microbatches applies the update of the previous step.
   */
  private async inParts<Result>(
    run: CompiledPart<Result>,
    kind: StepKind,
    given: DeviceState,
    batch: Batch,
    catchesUp: boolean,
  ): Promise<Result> {
    const parts = partsOf(batch, this.parts.accumulate);
    const last = parts.pop()!;
    let before: Accumulated<DeviceArray> | undefined;
    // The pass over the whole batch needs the parameters of this step, so the pending update is applied before that
    // pass, not during the first part.
    const settled = catchesUp && needsWhole(this.parts) ? await this.settling(given) : undefined;
    let state = settled?.state ?? given;
    const wholeBatch = await this.lookAhead(state, [...parts, last]);
    for (const [i, part] of parts.entries()) {
      if (i === 0 && catchesUp && settled === undefined)
        ({ state, before } = await this.catchUp(kind)(state, part, wholeBatch));
      else before = await withBefore(this.accumulate(kind), state, part, wholeBatch, before);
      if (i === 0 && settled !== undefined) before = { ...before, update: settled.update };
    }
    const result = await withBefore(run, state, last, wholeBatch, before);
    for (const leaf of flattenTree<DeviceArray>(wholeBatch).leaves) this.backend.free(leaf);
    return result;
  }

  /**
   * Computes the gradients that the optimizer will receive in the next step. A separate program computes the gradients,
   * so the compiled step and its results do not change. Must be called on all ranks. The state must have no pending
   * gradients, and is not changed.
   *
   * Cost: a step without its update, and a compilation on the first call; until `forget`, the memory of the program's
   * intermediate values.
   * @param updates Number of updates made so far.
   * @returns a tree with the structure of the trained parameters.
   */
  async gradients(updates: number, state: DeviceState, batch: Batch): Promise<unknown> {
    const { compressor } = stepKindAt(this.parts, updates);
    if (this.gradientsOf?.compressor !== compressor) this.forget();
    this.gradientsOf ??= {
      compressor,
      run: this.compile(exchangedGradients(this.parts, compressor), {
        donate: this.parts.accumulate > 1 ? [3] : [],
        name: "gradients of a train step",
      }),
    };
    return this.inParts(this.gradientsOf.run, { compressor, mode: "keep" }, state, batch, false);
  }

  /** Releases the compiled program and memory of `gradients`. */
  forget(): void {
    this.gradientsOf?.run.release();
    this.gradientsOf = undefined;
  }

  private compileStep(kind: StepKind): CompiledPart<DeviceResult> {
    return this.compile(trainStep(this.parts, kind), {
      donate: this.parts.accumulate > 1 ? [0, 3] : [0],
      name: kind.mode === "keep" ? "train step" : `train step (${modeNames[kind.mode]})`,
    });
  }

  /**
   * Applies pending gradients to the parameters. Consumes the state.
   *
   * @returns the new state, and the metrics of the applied update; without `overlap: dear`, no metrics.
   */
  settle(state: DeviceState): Promise<Settled<DeviceState, DeviceArray | undefined>> {
    return this.parts.overlap === "dear" ? this.settling(state) : Promise.resolve({ state, update: undefined });
  }

  /**
   * Switches to other buckets. Consumes the state, which must have no pending gradients. Compressor state per bucket is
   * lost.
   */
  async rebucket(state: DeviceState, buckets: BucketPlan): Promise<DeviceState> {
    const { residuals, pending, due, ...rest } = state;
    for (const leaf of flattenTree<DeviceArray>([residuals, pending, due]).leaves) this.backend.free(leaf);
    this.release();
    this.parts = withBuckets(this.parts, buckets, this.job);
    this.settling = this.compileSettle();
    const init = jit(initExchangeState(this.parts), this.backend, { mesh: this.parts.mesh });
    const fresh = (await init(randomKey(this.job.seed) as never)) as unknown as Pick<
      DeviceState,
      "residuals" | "pending" | "due"
    >;
    init.release();
    return { ...rest, ...fresh };
  }

  release(): void {
    for (const { run } of this.steps) run.release();
    this.steps.length = 0;
    this.forget();
    this.settling.release();
    for (const compiled of [...this.catchingUp.values(), ...this.accumulating.values()]) compiled.release();
    this.catchingUp.clear();
    this.accumulating.clear();
    this.lookAheadPass.release();
  }
}
