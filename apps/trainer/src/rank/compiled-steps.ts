import type { BucketPlan } from "@skein/tensor-core";
import { isOfGate } from "@skein/moe-parallel";
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
} from "@skein/tensor-core";
import { accumulate, type Accumulated } from "../step/loss-and-gradients.ts";
import { deferredPart, settle, type Settled } from "../step/deferred-step.ts";
import { exchangedGradients } from "../step/exchanged-gradients.ts";
import type { Job } from "../job/job.ts";
import { modeNames } from "../step/curvature.ts";
import {
  type DeviceState,
  initExchangeState,
  type Parts,
  type StepKind,
  stepKindAt,
  withBuckets,
} from "../step/train-state.ts";
import { trainStep } from "../step/train-step.ts";

export interface DeviceResult {
  readonly state: DeviceState;
  readonly loss: DeviceArray;
  readonly finite: DeviceArray;
  readonly update: DeviceArray;
  readonly skipped: DeviceArray;
  readonly figures: DeviceArray | readonly [];
}

type Batch = object;

type Step = (state: DeviceState, batch: Batch, before?: Accumulated<DeviceArray>) => Promise<DeviceResult>;

type Accumulate = (
  state: DeviceState,
  batch: Batch,
  before?: Accumulated<DeviceArray>,
) => Promise<Accumulated<DeviceArray>>;

export interface StepsInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
  readonly spanSink?: SpanSink | undefined;
}

/**
 * What rewrites a traced step of a job before a backend sees it. Gradients are exchanged, experts chosen, and weights
 * updated, in f32.
 */
export const passesFor = ({ precision, overlap }: Job): ((graph: Graph) => Graph)[] => [
  ...(precision.kind === "f32"
    ? []
    : [
        (graph: Graph) =>
          mixedPrecision(graph, {
            dtype: precision.kind === "mixed-bf16" ? "bf16" : "f16",
            keeps: (origin) => origin.phase === "communication" || origin.phase === "update" || isOfGate(origin),
          }),
      ]),
  ...(overlap === "none" ? [blockOnCollectives] : []),
];

/** The first part, where the update of the step before is made with it. Consumes the state. */
type DeferredPart = ((
  state: DeviceState,
  batch: Batch,
) => Promise<{ readonly state: DeviceState; readonly before: Accumulated<DeviceArray> }>) & { release(): void };

type Settle = ((state: DeviceState) => Promise<Settled<DeviceState, DeviceArray>>) & { release(): void };

/** A tree like that of trained parameters. */
type Gradients = (state: DeviceState, batch: Batch, before?: Accumulated<DeviceArray>) => Promise<unknown>;

/** A rank's batch in equal parts, in its order; views of it. */
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

/** Steps that stay compiled: those of compressors that take turns, each with and without curvature. */
const keptSteps = 6;

/** The compiled steps of a run, one for each kind, compiled when first needed. */
export class CompiledSteps {
  private parts: Parts;
  private readonly job: Job;
  private readonly backend: Backend;
  private readonly options: JitOptions;
  /** Least recently used first. */
  private readonly steps: { readonly kind: StepKind; readonly run: Step & { release(): void } }[] = [];
  private settling: Settle;
  /** Of the first part of a batch, where there are several, with `overlap: dear`. */
  private catchingUp: DeferredPart;
  /** Of all parts of a batch but the last, where there are several. */
  private readonly accumulating: Accumulate & { release(): void };
  /** For who looks at gradients; none is compiled until somebody does. */
  private looking:
    | { readonly compressor: StepKind["compressor"]; readonly run: Gradients & { release(): void } }
    | undefined;

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
    this.catchingUp = this.compileFirstPart();
    this.accumulating = jit(accumulate(parts), backend, {
      ...this.options,
      ...this.bound,
      donate: [2],
      name: "part of a train step",
    }) as unknown as Accumulate & { release(): void };
  }

  /** Of each compiled step's intermediates. */
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

  private compileFirstPart(): DeferredPart {
    return jit(deferredPart(this.parts, this.parts.compressorAt(0)), this.backend, {
      ...this.options,
      ...this.bound,
      name: "first part of a train step",
    }) as unknown as DeferredPart;
  }

  /** Do step `number`, counted from 0. Consumes the state. */
  async run(number: number, state: DeviceState, batch: Batch): Promise<DeviceResult> {
    const kind = stepKindAt(this.parts, number);
    const known = this.steps.findIndex(
      (step) => step.kind.compressor === kind.compressor && step.kind.mode === kind.mode,
    );
    const step = known < 0 ? { kind, run: this.compile(kind) } : this.steps.splice(known, 1)[0]!;
    this.steps.push(step);
    if (this.steps.length > keptSteps) this.steps.shift()!.run.release();
    const inParts = partsOf(batch, this.parts.accumulate);
    if (this.parts.overlap !== "dear" || inParts.length === 1) return this.lastPart(step.run, state, inParts);
    const [first, ...others] = inParts;
    const { state: caught, before } = await this.catchingUp(state, first!);
    return this.lastPart(step.run, caught, others, before);
  }

  /** Compute parts of a batch one after the other, the last by `run`. @param before what parts before them gave. */
  private async lastPart<Result>(
    run: (state: DeviceState, batch: Batch, before?: Accumulated<DeviceArray>) => Promise<Result>,
    state: DeviceState,
    inParts: readonly Batch[],
    before?: Accumulated<DeviceArray>,
  ): Promise<Result> {
    let sums = before;
    for (const part of inParts.slice(0, -1))
      sums = await (sums === undefined ? this.accumulating(state, part) : this.accumulating(state, part, sums));
    const last = inParts.at(-1)!;
    return sums === undefined ? run(state, last) : run(state, last, sums);
  }

  /**
   * The gradients that step `number`, counted from 0, will give its optimizer, by a program of its own: the step stays
   * the one that it is, and so do its bits. All ranks call it together. Leaves the state, which is settled, as it is.
   *
   * Cost: a step without its update, and the first time another compilation; until `forget` the memory of its
   * intermediates.
   * @returns a tree like that of the trained parameters.
   */
  async gradients(number: number, state: DeviceState, batch: Batch): Promise<unknown> {
    const { compressor } = stepKindAt(this.parts, number);
    if (this.looking?.compressor !== compressor) this.forget();
    this.looking ??= {
      compressor,
      run: jit(exchangedGradients(this.parts, compressor), this.backend, {
        ...this.options,
        ...this.bound,
        donate: this.parts.accumulate > 1 ? [2] : [],
        name: "gradients of a train step",
      }) as unknown as Gradients & { release(): void },
    };
    return this.lastPart(this.looking.run, state, partsOf(batch, this.parts.accumulate));
  }

  /** Let go of what `gradients` keeps. */
  forget(): void {
    this.looking?.run.release();
    this.looking = undefined;
  }

  private compile(kind: StepKind): Step & { release(): void } {
    return jit(trainStep(this.parts, kind), this.backend, {
      ...this.options,
      ...this.bound,
      donate: this.parts.accumulate > 1 ? [0, 2] : [0],
      name: kind.mode === "keep" ? "train step" : `train step (${modeNames[kind.mode]})`,
    }) as unknown as Step & { release(): void };
  }

  /**
   * Bring what is on its way into the parameters. Consumes the state.
   *
   * @returns the figures of that update, too, where one can be on its way.
   */
  settle(state: DeviceState): Promise<Settled<DeviceState, DeviceArray | undefined>> {
    return this.parts.overlap === "dear" ? this.settling(state) : Promise.resolve({ state, update: undefined });
  }

  /**
   * Go on with other buckets. Consumes the state, in which nothing is on its way; compressors that keep something per
   * bucket lose it.
   */
  async rebucket(state: DeviceState, buckets: BucketPlan): Promise<DeviceState> {
    const { residuals, pending, due, ...rest } = state;
    for (const leaf of flattenTree<DeviceArray>([residuals, pending, due]).leaves) this.backend.free(leaf);
    this.release();
    this.parts = withBuckets(this.parts, buckets, this.job);
    this.settling = this.compileSettle();
    this.catchingUp = this.compileFirstPart();
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
    this.catchingUp.release();
    this.accumulating.release();
  }
}
