import {
  byteLength,
  type Communicators,
  type DeviceArray,
  type Graph,
  InvariantError,
  type SpanArgs,
  type SpanSink,
} from "@skein/tensor-core";
import {
  ArgumentLoan,
  type ArrayLedger,
  beginCollective,
  type CollectiveHandle,
  type CollectiveOrder,
  collectiveOrderOf,
  type CollectivePlan,
  CollectiveSpans,
  type Executable,
  ExclusiveRun,
  kernelNodeOf,
  type MemoryPlan,
  type Node,
  nodeArgsOf,
  type OwnedArray,
  type Place,
  planCollective,
  rankAlong,
  retryAfterReclaim,
  spanNameOf,
  valueKey,
  type KernelNode,
  roleOf,
} from "@skein/tensor-core/backend";
import { alignUp, type Arena } from "./arena.ts";
import type { KernelCall } from "./kernel.ts";
import type { WasmExports } from "./wasm-exports.ts";
import type { KernelTable } from "./kernel-table.ts";
import type { Team } from "./team/team.ts";

/** An array in the arena. Its memory is identified by a byte address. */
type CpuArray = OwnedArray<number>;

/**
 * Addresses of a node's operands. The start address of each region can change between runs; the offset within the
 * region is fixed.
 */
interface Operands {
  readonly addresses: Int32Array;
  readonly regions: Int32Array;
  readonly offsets: Float64Array;
}

interface Step {
  readonly node: Node;
  readonly inputs: Operands;
  readonly outputs: Operands;
  readonly call?: KernelCall;
  readonly constants: number;
  readonly collective?: CollectivePlan;
  /** Only for `collective-done`: index of the step that started the collective. */
  readonly waitsFor?: number;
  /** Name and arguments of the kernel's span. Absent: spans are not recorded. */
  readonly span?: { readonly name: string; readonly args: SpanArgs };
}

export interface ExecutableParts {
  readonly graph: Graph;
  readonly plan: MemoryPlan;
  readonly arena: Arena;
  readonly wasm: WasmExports;
  readonly donate: readonly number[];
  readonly spanSink?: SpanSink | undefined;
  readonly ledger: ArrayLedger<number>;
  readonly kernels: KernelTable;
  readonly team: Team;
}

/** A graph bound to one arena: a list of kernel calls over a fixed workspace. */
export class CpuExecutable implements Executable {
  readonly workspaceBytes: number;
  private readonly parts: ExecutableParts;
  private readonly steps: readonly Step[];
  private readonly allocations: number[] = [];
  /** Start addresses of the regions. Region 0 is the workspace; the inputs and the outputs follow. */
  private readonly bases: Float64Array;
  private readonly scratch: number;
  /** Whether a collective of a failed run may still write to the workspace. The next run then needs a new workspace. */
  private workspaceLost = false;
  private readonly exclusive = new ExclusiveRun();

  constructor(parts: ExecutableParts) {
    this.parts = parts;
    const { graph, plan, kernels, team } = parts;
    this.bases = new Float64Array(1 + graph.inputs.length + graph.outputs.length);
    const kernelNodes = graph.nodes.map((node) => kernelNodeOf(graph, node));
    const scratchBytes = kernelNodes.reduce(
      (most, node) => Math.max(most, kernels[node.op]?.scratchBytes?.(node, team.threads) ?? 0),
      0,
    );
    this.workspaceBytes = plan.workspaceBytes + scratchBytes;
    try {
      this.bases[0] = this.allocate(plan.workspaceBytes);
      this.scratch = this.allocate(scratchBytes);
      this.steps = this.bind(kernelNodes);
    } catch (error) {
      for (const address of this.allocations) parts.arena.release(address);
      throw error;
    }
    parts.ledger.attach(this, this.allocations);
  }

  private allocate(bytes: number): number {
    const address = this.parts.arena.allocate(bytes);
    this.allocations.push(address);
    return address;
  }

  private regionOf(place: Place): number {
    if (place.region === "workspace") return 0;
    return place.region === "input" ? 1 + place.index : 1 + this.parts.graph.inputs.length + place.index;
  }

  private operands(places: readonly Place[]): Operands {
    return {
      addresses: new Int32Array(places.length),
      regions: Int32Array.from(places, (place) => this.regionOf(place)),
      offsets: Float64Array.from(places, (place) => place.offset),
    };
  }

  private bind(kernelNodes: readonly KernelNode[]): Step[] {
    const { graph, plan, wasm, arena, spanSink, kernels, team } = this.parts;
    const place = (key: string): Place => {
      const found = plan.places.get(key);
      if (found === undefined) throw new InvariantError(`value ${key} is missing in the memory plan`);
      return found;
    };
    const constants = this.writeConstants(kernelNodes);
    const steps: Step[] = [];
    const stepOfNode = new Map<number, number>();
    for (const node of graph.nodes) {
      const role = roleOf(node);
      if (role === "argument") continue;
      const inputLocations = node.inputs.map((ref) => place(valueKey(ref)));
      const outputLocations = node.specs.map((_, output) => place(valueKey({ node: node.id, output })));
      const base = {
        node,
        inputs: this.operands(inputLocations),
        outputs: this.operands(outputLocations),
        constants: constants.get(node.id) ?? 0,
        ...(spanSink && { span: { name: spanNameOf(node.op, node.scope), args: nodeArgsOf(node) } }),
      };
      if (role === "start") {
        stepOfNode.set(node.id, steps.length);
        steps.push({ ...base, collective: planCollective(graph, node) });
      } else if (role === "done") {
        const waitsFor = stepOfNode.get(node.inputs[0]!.node)!;
        const startStep = steps[waitsFor]!;
        // No step runs between start and wait, so the waiting thread may execute the request itself.
        if (waitsFor === steps.length - 1 && startStep.collective !== undefined)
          steps[waitsFor] = {
            ...startStep,
            collective: { ...startStep.collective, request: { ...startStep.collective.request, awaited: true } },
          };
        steps.push({ ...base, waitsFor });
      } else if (role === "position") {
        steps.push(base);
      } else if (!plan.settled.has(node.id) && node.specs.some((spec) => byteLength(spec) > 0)) {
        steps.push({ ...base, call: kernels[node.op]!.bind(kernelNodes[node.id]!, wasm, arena.memory, team) });
      }
    }
    return steps;
  }

  private writeConstants(kernelNodes: readonly KernelNode[]): Map<number, number> {
    const { arena, kernels } = this.parts;
    const blocks = kernelNodes.flatMap((node, id) => {
      const bytes = kernels[node.op]?.constants?.(node);
      return bytes === undefined ? [] : [{ id, bytes }];
    });
    const begin = this.allocate(blocks.reduce((total, block) => total + alignUp(block.bytes.byteLength), 0));
    const addresses = new Map<number, number>();
    let offset = 0;
    for (const { id, bytes } of blocks) {
      new Uint8Array(arena.memory.buffer).set(bytes, begin + offset);
      addresses.set(id, begin + offset);
      offset += alignUp(bytes.byteLength);
    }
    return addresses;
  }

  private region(address: number, bytes: number): Uint8Array {
    return this.parts.arena.bytesAt(address >>> 0, bytes);
  }

  private resolve(operands: Operands): void {
    const { addresses, regions, offsets } = operands;
    for (let i = 0; i < addresses.length; i++) addresses[i] = this.bases[regions[i]!]! + offsets[i]!;
  }

  get collectives(): CollectiveOrder {
    return collectiveOrderOf(this.parts.graph);
  }

  run(inputs: readonly DeviceArray[], communicators: Communicators = {}): Promise<DeviceArray[]> {
    return this.exclusive.run(() => this.runSteps(inputs, communicators));
  }

  private async runSteps(inputs: readonly DeviceArray[], communicators: Communicators): Promise<CpuArray[]> {
    const { ledger } = this.parts;
    const spanSink = this.parts.spanSink?.recording === true ? this.parts.spanSink : undefined;
    const loan = new ArgumentLoan(this.parts, ledger, inputs);
    this.bases.set(loan.memories, 1);
    const opening = this.openRegions(loan);
    if (opening !== undefined) await opening;
    /** Collectives in progress, by the index of the step that started them. */
    const inProgress = new Map<number, CollectiveHandle>();
    /** Spans of collectives, by the index of the step that started the collective. Empty if spans are not recorded. */
    const spans = new Map<number, CollectiveSpans>();
    try {
      for (let i = 0; i < this.steps.length; i++) {
        const step = this.steps[i]!;
        this.resolve(step.inputs);
        this.resolve(step.outputs);
        const began = spanSink?.now() ?? 0;
        if (step.call !== undefined) {
          step.call(step.inputs.addresses, step.outputs.addresses, this.scratch, step.constants);
          if (spanSink !== undefined) recordKernel(spanSink, step, began);
        } else if (roleOf(step.node) === "position") {
          new Int32Array(this.parts.arena.memory.buffer, step.outputs.addresses[0]! >>> 0, 1)[0] = rankAlong(
            step.node,
            communicators,
          );
        } else if (step.collective !== undefined) {
          const { inputBytes, outputBytes } = step.collective;
          const operands = inputBytes.map((bytes, at) => this.region(step.inputs.addresses[at]!, bytes));
          const results = outputBytes.map((bytes, at) => this.region(step.outputs.addresses[at]!, bytes));
          const handle = beginCollective(step.collective, operands, results, communicators);
          if (handle !== undefined) inProgress.set(i, handle);
          if (spanSink !== undefined) {
            const span = new CollectiveSpans(spanSink, step.node, step.collective, communicators);
            span.started(began);
            spans.set(i, span);
          }
        } else {
          const plan = this.steps[step.waitsFor!]!.collective!;
          const handle = inProgress.get(step.waitsFor!);
          if (handle !== undefined) {
            const pending = communicators[plan.axis]!.wait(handle);
            if (pending !== undefined) await pending;
            inProgress.delete(step.waitsFor!); // a failed collective may still write to its regions
          }
          const span = spans.get(step.waitsFor!);
          span?.reached(began);
          span?.done(plan, handle, communicators);
        }
      }
    } catch (error) {
      this.abandon(loan, [...inProgress.keys()]);
      throw error;
    }
    this.copyOutputs();
    return loan.settle((index) => this.bases[this.regionOf(this.parts.plan.outputs[index]!)]!);
  }

  /**
   * After a failure, releases memory that is no longer in use. Regions that a collective in progress may still read or
   * write are never reused.
   */
  private abandon(loan: ArgumentLoan<number>, inProgress: readonly number[]): void {
    const { graph, plan, arena } = this.parts;
    const inUse = new Set(
      inProgress.flatMap((start) => [...this.steps[start]!.inputs.regions, ...this.steps[start]!.outputs.regions]),
    );
    if (inUse.has(0)) {
      this.allocations.splice(this.allocations.indexOf(this.bases[0]!), 1);
      this.workspaceLost = true;
    }
    for (const place of plan.outputs)
      if (place.region === "output" && !inUse.has(this.regionOf(place)))
        arena.release(this.bases[this.regionOf(place)]!);
    loan.lose(new Set(graph.inputs.map((_, index) => index).filter((index) => inUse.has(1 + index))));
  }

  /**
   * Allocates a workspace if the previous workspace was lost, and allocates the outputs that do not reuse a donated
   * input. After a failure, no allocation remains and the arguments are returned.
   *
   * @returns undefined if there is nothing to wait for.
   */
  private openRegions(loan: ArgumentLoan<number>): Promise<void> | undefined {
    const { ledger } = this.parts;
    const refuse = (error: unknown): never => {
      loan.giveBack();
      throw error;
    };
    try {
      const allocate = (): void | Promise<void> =>
        retryAfterReclaim(
          () => this.allocateRegions(),
          () => ledger.reclaim(),
        );
      const relief = ledger.reclaimIfGrown();
      const opening = relief === undefined ? allocate() : relief.then(allocate);
      return opening instanceof Promise ? opening.catch(refuse) : undefined;
    } catch (error) {
      return refuse(error);
    }
  }

  /** Allocates all regions. Throws OutOfMemoryError, and allocates no region, if the memory is insufficient. */
  private allocateRegions(): void {
    const { plan, arena } = this.parts;
    const fresh: number[] = [];
    try {
      if (this.workspaceLost) this.bases[0] = this.allocate(plan.workspaceBytes);
      this.workspaceLost = false;
      plan.outputs.forEach((place, i) => {
        if (place.region !== "output") return;
        const address = arena.allocate(plan.outputBytes[i]!);
        fresh.push(address);
        this.bases[this.regionOf(place)] = address;
      });
    } catch (error) {
      for (const address of fresh) arena.release(address);
      throw error;
    }
  }

  /**
   * Copies outputs that need their own memory: outputs that are inputs, outputs that are regions of larger blocks, and
   * outputs that are returned twice.
   */
  private copyOutputs(): void {
    const { plan, arena } = this.parts;
    const memory = new Uint8Array(arena.memory.buffer);
    for (const { from, to, bytes } of plan.copies) {
      const source = this.bases[this.regionOf(from)]! + from.offset;
      memory.copyWithin(this.bases[this.regionOf(to)]! + to.offset, source, source + bytes);
    }
  }

  release(): void {
    this.exclusive.release(() => {
      for (const address of this.allocations.splice(0)) this.parts.arena.release(address);
    });
  }
}

const recordKernel = (spanSink: SpanSink, { span }: Step, startSeconds: number): void => {
  if (span !== undefined) spanSink.record({ ...span, track: "compute", startSeconds, endSeconds: spanSink.now() });
};
