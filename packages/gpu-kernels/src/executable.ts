import {
  type Communicators,
  type DeviceArray,
  type Graph,
  type SpanArgs,
  spanned,
  type SpanSink,
} from "@skein/tensor-core";
import {
  ArgumentLoan,
  type ArrayLedger,
  type CollectiveOrder,
  collectiveOrderOf,
  type Executable,
  ExclusiveRun,
  type MemoryPlan,
  nodeArgsOf,
  type OwnedArray,
  type Place,
  rankAlong,
  spanNameOf,
} from "@skein/tensor-core/backend";
import { type ArrayBlock, releaseBlock } from "./array-block.ts";
import type { BufferPool, BufferRequest } from "./buffer-pool.ts";
import type { WebGpuDevice } from "./device.ts";
import { Exchanges } from "./exchanges.ts";
import { type HostMemory, padded } from "./host-transfer.ts";
import type { KernelChoices } from "./kernel.ts";
import type { KernelTable } from "./kernel-table.ts";
import {
  type DispatchStep,
  emptyBytes,
  lower,
  type LoweredStep,
  type Regions,
  regionsOf,
  workPerSubmission,
} from "./lower.ts";
import type { Pipeline, PipelineCache } from "./pipeline-cache.ts";
import { Recorder } from "./recorder.ts";
import type { BufferRange } from "./resolve-bindings.ts";
import { StepTimer } from "./step-timer.ts";

export type GpuArray = OwnedArray<ArrayBlock>;

export interface ExecutableParts {
  readonly graph: Graph;
  readonly plan: MemoryPlan;
  readonly device: WebGpuDevice;
  readonly pool: BufferPool;
  readonly pipelines: PipelineCache;
  readonly ledger: ArrayLedger<ArrayBlock>;
  readonly hostMemory: HostMemory;
  readonly choices: KernelChoices;
  /** Kernels by operator name. Default: the built-in kernels. */
  readonly kernels?: KernelTable;
  readonly donate: readonly number[];
  readonly spanSink?: SpanSink | undefined;
}

/** A dispatch with its pipeline, uniform offsets and cached bind groups, which are kept between runs. */
interface BoundDispatch {
  readonly step: DispatchStep;
  readonly pipeline: Pipeline;
  compiled?: GPUComputePipeline;
  /**
   * Byte offset of the uniform `sizes` in the uniform buffer. `sliceOffsets` holds the offset of each slice's uniform.
   */
  readonly sizesOffset: number;
  readonly sliceOffsets: readonly number[];
  /** Indices of the regions whose buffers change between runs. */
  readonly dynamic: readonly number[];
  readonly groups: Map<string, readonly GPUBindGroup[]>;
}

/** Request for a buffer of a run. `keep` stores the allocated buffer. */
interface Need extends BufferRequest {
  readonly keep: (buffer: GPUBuffer) => void;
}

const uniformAlignment = 256;

/** Maximum number of cached bind groups. A loop alternates between few sets of buffers; older sets are bound again. */
const maxBindGroups = 8;

/**
 * Maximum number of submitted runs that the device has not completed. Two runs keep the device busy and use little
 * memory.
 */
const maxRunsAhead = 2;

/**
 * A graph compiled for one device: pipelines, and bind groups over fixed buffers. Commands are recorded again in each
 * run.
 *
 * At a collective, the commands recorded so far are submitted. The operands are read back and passed to the
 * communicator while the device continues with later commands. With a span sink, kernel spans use the device's clock.
 * The span of a collective begins with the request, after the operands have been read back, and ends when the result
 * has arrived. The device may work while the host waits for the collective.
 */
export class WebGpuExecutable implements Executable {
  readonly workspaceBytes: number;
  private readonly parts: ExecutableParts;
  private readonly regions: Regions;
  private readonly buffers: (GPUBuffer | undefined)[];
  /** Buffers that every run allocates: its outputs, and staging buffers for the operands of collectives. */
  private readonly needs: readonly Need[];
  /** Buffers that only the first run allocates. Afterwards `workspace` holds them until the executable is released. */
  private fixed: readonly Need[];
  private readonly workspace: ArrayBlock[] = [];
  private uniforms: GPUBuffer | undefined;
  /** Staging buffers of each step that starts a collective, during a run. */
  private readonly staging: ReadonlyMap<LoweredStep, GPUBuffer[]>;
  private readonly steps: readonly LoweredStep[];
  private readonly dispatches: ReadonlyMap<LoweredStep, BoundDispatch>;
  private readonly inFlight: Promise<unknown>[] = [];
  private readonly bufferIds = new WeakMap<GPUBuffer, number>();
  private nextBufferId = 0;
  private compiled: Promise<unknown> | undefined;
  private readonly exclusive = new ExclusiveRun();
  /** Arguments of kernel spans, by node number. Cached when the node is first recorded. */
  private readonly spanArgs = new Map<number, SpanArgs>();

  constructor(parts: ExecutableParts) {
    this.parts = parts;
    const { graph, plan, device, pool, choices } = parts;
    const { facts, gpu } = device;
    this.regions = regionsOf(plan.slabBytes.length, graph.inputs.length, graph.outputs.length);
    const lowered = lower(graph, plan, facts, choices, parts.kernels);
    this.steps = lowered.steps;
    this.workspaceBytes = plan.workspaceBytes + lowered.scratchBytes + lowered.copyBytes;

    this.buffers = new Array<GPUBuffer | undefined>(this.regions.count).fill(undefined);
    const fixed: Need[] = [];
    const fix = (bytes: number, kind: Need["kind"], keep: Need["keep"]): void => {
      if (bytes === 0) return;
      const need: Need = { bytes, kind, keep };
      pool.sizeOf(need); // throws at compile time if a buffer exceeds the maximum size
      fixed.push(need);
    };
    const reserveRegion = (region: number, bytes: number): void =>
      fix(bytes, "storage", (buffer) => void (this.buffers[region] = buffer));
    plan.slabBytes.forEach((bytes, slab) => reserveRegion(slab, bytes));
    reserveRegion(this.regions.scratch, lowered.scratchBytes);
    fix(lowered.constantBytes, "storage", (buffer) => {
      this.buffers[this.regions.constants] = buffer;
      for (const { offset, bytes } of lowered.constants) gpu.queue.writeBuffer(buffer, offset, padded(bytes));
    });
    reserveRegion(this.regions.copies, lowered.copyBytes);
    reserveRegion(this.regions.empty, emptyBytes(facts));

    const uniformWords: { offset: number; words: readonly number[] }[] = [];
    const uniform = (words: readonly number[]): number => {
      const last = uniformWords.at(-1);
      const offset =
        last === undefined ? 0 : last.offset + Math.ceil((4 * last.words.length) / uniformAlignment) * uniformAlignment;
      uniformWords.push({ offset, words });
      return offset;
    };
    this.dispatches = new Map(
      this.steps
        .filter((step) => step.kind === "dispatch")
        .map((step): [LoweredStep, BoundDispatch] => [
          step,
          {
            step,
            pipeline: parts.pipelines.get(step.code, step.bindingKinds, step.label, step.node.op),
            sizesOffset: step.sizes === undefined ? 0 : uniform(step.sizes),
            sliceOffsets: step.slices.flatMap(({ words }) => (words === undefined ? [] : [uniform(words)])),
            dynamic: [...new Set(step.variables.map(({ at }) => at.region))].filter(
              (region) => region >= this.regions.firstInput,
            ),
            groups: new Map(),
          },
        ]),
    );
    const last = uniformWords.at(-1);
    if (last !== undefined)
      fix(
        last.offset + uniformAlignment * Math.ceil((4 * last.words.length) / uniformAlignment),
        "uniform",
        (buffer) => {
          this.uniforms = buffer;
          for (const { offset, words } of uniformWords) gpu.queue.writeBuffer(buffer, offset, Uint32Array.from(words));
        },
      );
    this.fixed = fixed;

    this.staging = new Map(this.steps.filter(({ kind }) => kind === "start").map((step) => [step, []]));
    const outputs = plan.outputs.flatMap(({ region }, i): Need[] =>
      region === "output"
        ? [
            {
              bytes: plan.outputBytes[i]!,
              kind: "storage",
              keep: (buffer) => void (this.buffers[this.regions.firstOutput + i] = buffer),
            },
          ]
        : [],
    );
    const staging = this.steps.flatMap((step): Need[] =>
      step.kind === "start"
        ? step.inputs.map(({ bytes }) => ({
            bytes: Math.max(16, bytes),
            kind: "staging",
            keep: (buffer) => void this.staging.get(step)!.push(buffer),
          }))
        : [],
    );
    this.needs = [...outputs, ...staging];
    parts.ledger.attach(this, this.workspace);
  }

  get collectives(): CollectiveOrder {
    return collectiveOrderOf(this.parts.graph);
  }

  run(inputs: readonly DeviceArray[], communicators: Communicators = {}): Promise<DeviceArray[]> {
    return this.exclusive.run(() => this.runSteps(inputs, communicators));
  }

  private async prepare(): Promise<void> {
    const { device, spanSink } = this.parts;
    device.check();
    this.compiled ??= spanned(spanSink, { name: "compile shaders", track: "host" }, () =>
      Promise.all(
        [...this.dispatches.values()].map(async (dispatch) => {
          dispatch.compiled = await dispatch.pipeline.ready;
        }),
      ),
    );
    await this.compiled;
    while (this.inFlight.length >= maxRunsAhead) await this.inFlight.shift();
    device.check();
  }

  private async runSteps(inputs: readonly DeviceArray[], communicators: Communicators): Promise<GpuArray[]> {
    const { device, plan, ledger } = this.parts;
    const spanSink = this.parts.spanSink?.recording === true ? this.parts.spanSink : undefined;
    const loan = new ArgumentLoan(this.parts, ledger, inputs);
    await this.open(loan);
    const timer =
      spanSink !== undefined && device.facts.timestamps ? new StepTimer(device, () => spanSink.now()) : undefined;
    const began = spanSink?.now() ?? 0;
    const recorder = new Recorder(device, timer);
    try {
      await this.record(recorder, communicators, spanSink);
      for (const { from, to, bytes } of plan.copies)
        recorder.copy(this.bufferOf(from), from.offset, this.bufferOf(to), to.offset, bytes);
      recorder.resolve();
    } catch (error) {
      // The device executes commands in order, so the next owner of these buffers writes after the submitted commands.
      // Collectives in progress use only host memory.
      this.releaseOutputs();
      loan.lose();
      throw error;
    }
    const outputs = loan.settle((index) => ({ buffer: this.bufferOf(plan.outputs[index]!) }));
    this.buffers.fill(undefined, this.regions.firstOutput); // the buffers now belong to the outputs
    if (spanSink !== undefined) await this.recordSpans(spanSink, timer, began);
    // the loss of a device is reported by the next call
    const finished = device.awaiting(device.gpu.queue.onSubmittedWorkDone()).catch(() => undefined);
    this.inFlight.push(finished);
    return outputs;
  }

  private async record(recorder: Recorder, communicators: Communicators, sink: SpanSink | undefined): Promise<void> {
    const { facts, gpu } = this.parts.device;
    const bound = workPerSubmission(facts, this.parts.choices);
    const exchanges = new Exchanges({
      device: this.parts.device,
      hostMemory: this.parts.hostMemory,
      communicators,
      sink,
      bufferAt: (range) => this.buffer(range),
    });
    let work = 0;
    try {
      for (const [index, step] of this.steps.entries()) {
        if (step.kind === "dispatch") {
          work += this.dispatch(recorder, this.dispatches.get(step)!);
          if (work < bound) continue;
          recorder.submit();
          work = 0;
        } else if (step.kind === "position") {
          recorder.submit(); // the write on the queue takes place after submitted commands and before later commands
          gpu.queue.writeBuffer(
            this.buffer(step.output),
            step.output.offset,
            Int32Array.of(rankAlong(step.node, communicators)),
          );
        } else if (step.kind === "start") {
          exchanges.begin(index, step, this.staging.get(step)!, recorder);
        } else {
          recorder.submit();
          await exchanges.finish(step.start);
        }
      }
    } finally {
      await exchanges.close();
      for (const buffers of this.staging.values())
        for (const buffer of buffers.splice(0)) this.parts.pool.release(buffer);
    }
  }

  private dispatch(recorder: Recorder, dispatch: BoundDispatch): number {
    const { step } = dispatch;
    for (const { from, toOffset } of step.copies)
      recorder.copy(this.buffer(from), from.offset, this.buffers[this.regions.copies]!, toOffset, from.bytes);
    const groups = this.bindGroups(dispatch);
    step.slices.forEach(({ grid }, i) => {
      if (i > 0) recorder.submit();
      const pass = recorder.compute(step.node);
      pass.setPipeline(dispatch.compiled!);
      pass.setBindGroup(0, groups[i]!);
      pass.dispatchWorkgroups(...grid);
    });
    return step.slices.length > 1 ? Infinity : step.work;
  }

  private bindGroups(dispatch: BoundDispatch): readonly GPUBindGroup[] {
    const { step, pipeline, groups, dynamic } = dispatch;
    const key = dynamic.map((region) => this.idOf(this.buffers[region]!)).join();
    const found = groups.get(key);
    if (found !== undefined) return found;
    const resource = (buffer: GPUBuffer, offset: number, size: number): GPUBufferBinding => ({ buffer, offset, size });
    const storage = step.variables.map(({ at }) => resource(this.buffer(at), at.offset, at.bytes));
    const sizes =
      step.sizes === undefined
        ? []
        : [resource(this.uniforms!, dispatch.sizesOffset, Math.ceil(step.sizes.length / 4) * 16)];
    const made = step.slices.map((_, slice) => {
      const offset = dispatch.sliceOffsets[slice];
      const all = [...storage, ...sizes, ...(offset === undefined ? [] : [resource(this.uniforms!, offset, 16)])];
      return this.parts.device.gpu.createBindGroup({
        layout: pipeline.layout,
        entries: all.map((binding, slot) => ({ binding: slot, resource: binding })),
      });
    });
    if (groups.size >= maxBindGroups) groups.delete(groups.keys().next().value!);
    groups.set(key, made);
    return made;
  }

  private async recordSpans(spanSink: SpanSink, timer: StepTimer | undefined, began: number): Promise<void> {
    const { graph, device } = this.parts;
    if (timer === undefined) {
      await device.settle(device.gpu.queue.onSubmittedWorkDone());
      const name = "all kernels (this adapter has no timestamps)";
      spanSink.record({ name, track: "compute", startSeconds: began, endSeconds: spanSink.now() });
      return;
    }
    for (const { owner, begin, end } of await timer.read()) {
      const node = graph.nodes[owner]!;
      let args = this.spanArgs.get(owner);
      if (args === undefined) this.spanArgs.set(owner, (args = nodeArgsOf(node)));
      const name = spanNameOf(node.op, node.scope);
      spanSink.record({ name, track: "compute", startSeconds: begin, endSeconds: Math.max(begin, end), args });
    }
  }

  private idOf(buffer: GPUBuffer): number {
    let id = this.bufferIds.get(buffer);
    if (id === undefined) this.bufferIds.set(buffer, (id = this.nextBufferId++));
    return id;
  }

  private buffer(at: BufferRange): GPUBuffer {
    return this.buffers[at.region]!;
  }

  private bufferOf(reserveRegion: Place): GPUBuffer {
    const { firstInput, firstOutput } = this.regions;
    return this.buffers[
      reserveRegion.index +
        (reserveRegion.region === "workspace" ? 0 : reserveRegion.region === "input" ? firstInput : firstOutput)
    ]!;
  }

  /**
   * Compiles missing pipelines, waits for earlier runs and for arguments that are still being uploaded, and allocates
   * all missing buffers of the run: the workspace in the first run, and the outputs that do not reuse a donated input.
   * After a failure, the arguments are released and no buffer is allocated.
   */
  private async open(loan: ArgumentLoan<ArrayBlock>): Promise<void> {
    const { pool, ledger } = this.parts;
    try {
      await this.prepare();
      await ledger.reclaimIfGrown();
      pool.age();
      for (const [i, { buffer }] of loan.memories.entries())
        this.buffers[this.regions.firstInput + i] = buffer instanceof Promise ? await buffer : buffer;
      const needs = [...this.fixed, ...this.needs];
      const buffers = await pool.take(needs);
      needs.forEach(({ keep }, i) => keep(buffers[i]!));
      this.workspace.push(...buffers.slice(0, this.fixed.length).map((buffer) => ({ buffer })));
      this.fixed = [];
    } catch (error) {
      loan.giveBack();
      throw error;
    }
  }

  private releaseOutputs(): void {
    for (const buffer of this.buffers.slice(this.regions.firstOutput))
      if (buffer !== undefined) this.parts.pool.release(buffer);
    this.buffers.fill(undefined, this.regions.firstOutput);
  }

  release(): void {
    this.exclusive.release(() => {
      for (const block of this.workspace.splice(0)) releaseBlock(this.parts.pool, block);
    });
  }
}
