import { byteLength, type Graph, InvariantError, type SpanArgs } from "@skein/tensor-core";
import {
  type CollectiveKind,
  type Node,
  nodeArgsOf,
  planCollective,
  spanNameOf,
  roleOf,
} from "@skein/tensor-core/backend";
import type { ComputeDevice } from "../hardware/hardware.ts";
import type { CollectivePrice, CollectivePricer } from "./collective-price.ts";
import { computeTypeOf, type KernelPrice, kernelPricer, nodeWork } from "./kernel-price.ts";

interface StepBase {
  /** Id of the graph node. */
  readonly node: number;
  /** Name of the step's span in a trace of a run. */
  readonly name: string;
  readonly scope: string;
  readonly args: SpanArgs;
}

/** A step that runs a kernel. */
export interface KernelStep extends StepBase {
  readonly kind: "kernel";
  readonly operator: string;
  readonly price: KernelPrice;
}

/** A step that starts a collective without waiting for it. */
export interface StartStep extends StepBase {
  readonly kind: "start";
  readonly collective: CollectiveKind;
  readonly axis: string;
  readonly bytes: number;
  /** Whether the number of rows is known only at run time. Absent: false. */
  readonly isRagged?: boolean | undefined;
  readonly priority?: number | undefined;
  readonly price: CollectivePrice;
}

/** A step that waits for a collective. */
export interface WaitStep extends StepBase {
  readonly kind: "wait";
  /** Index of the collective's start in the program. */
  readonly start: number;
}

/**
 * Whether a step is the start of a collective.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * const hardware = { device: hardwareNamed("v100").device, collectives: {} };
 * console.log(stepProgram({ graph, settled: new Set() }, hardware).some(isStart)); // false
 * ```
 */
export const isStart = (step: StepProgram[number]): step is StartStep => step.kind === "start";

/**
 * Steps of a rank in one training step, each with its predicted time, in the order in which a backend runs the graph.
 */
export type StepProgram = readonly (KernelStep | StartStep | WaitStep)[];

/** A graph after a backend's graph passes, with the set of nodes that cost nothing. */
export interface PreparedGraph {
  readonly graph: Graph;
  /** Ids of nodes that need no computation and no copy: `MemoryPlan.settled`. */
  readonly settled: ReadonlySet<number>;
}

/** Hardware for which the time of a step is predicted. */
export interface StepHardware {
  readonly device: ComputeDevice;
  /** Functions that predict the times of collectives, by mesh axis. */
  readonly collectives: { readonly [axis: string]: CollectivePricer };
}

/**
 * Whether a node of a prepared graph runs a kernel.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => square(x), [{ dtype: "f32", shape: [1024] }]);
 * const prepared = { graph, settled: new Set<number>() };
 * console.log(graph.nodes.map((node) => isKernel(prepared, node))); // [false, true]
 * ```
 */
export const isKernel = ({ settled }: PreparedGraph, node: Node): boolean =>
  roleOf(node) === undefined && !settled.has(node.id) && node.specs.some((spec) => byteLength(spec) > 0);

/**
 * Predicts the time of each node of a prepared graph, in the order of the graph. Views that the memory plan resolves
 * are left out. The bytes of a fused node are counted only once. Times of collectives are predicted for the algorithms
 * that a run would choose.
 *
 * @throws InvariantError if an axis has no links, or a wait has no start.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * const hardware = { device: hardwareNamed("v100").device, collectives: {} };
 * const program = stepProgram({ graph, settled: new Set() }, hardware);
 * console.log(program.map(({ kind }) => kind)); // ['kernel', 'kernel']
 * ```
 */
export const stepProgram = (prepared: PreparedGraph, { device, collectives }: StepHardware): StepProgram => {
  const { graph } = prepared;
  const price = kernelPricer(device);
  const program: (KernelStep | StartStep | WaitStep)[] = [];
  const starts = new Map<number, number>();
  for (const node of graph.nodes) {
    const { id, op, scope } = node;
    const role = roleOf(node);
    if (role === "start") {
      const { axis, inputBytes, outputBytes, request, capacity } = planCollective(graph, node);
      const isRagged = capacity !== undefined;
      const pricer = collectives[axis];
      if (pricer === undefined)
        throw new InvariantError(`the graph communicates along axis "${axis}", which has no pricer`);
      const bytes = Math.max(inputBytes[0]!, outputBytes[0]!);
      starts.set(id, program.length);
      program.push({
        kind: "start",
        node: id,
        name: spanNameOf(request.kind, scope),
        scope,
        args: {
          operator: request.kind,
          ...(scope !== "" && { scope }),
          bytes: inputBytes[0]!,
          resultBytes: outputBytes[0]!,
          axis,
        },
        collective: request.kind,
        axis,
        bytes,
        ...(isRagged && { isRagged }),
        priority: request.priority,
        price: pricer(request.kind, bytes, isRagged),
      });
    } else if (role === "done") {
      const start = starts.get(node.inputs[0]!.node);
      if (start === undefined)
        throw new InvariantError(`node ${id} waits for a collective that no earlier node starts`);
      const { name, args } = program[start]!;
      program.push({ kind: "wait", node: id, name, scope, args, start });
    } else if (isKernel(prepared, node)) {
      const work = nodeWork(graph, node);
      program.push({
        kind: "kernel",
        node: id,
        name: spanNameOf(op, scope),
        scope,
        args: nodeArgsOf(node),
        operator: op,
        price: price(op, work, computeTypeOf(graph, node)),
      });
    }
  }
  return program;
};

/**
 * Returns the seconds of all kernels of a program, without collectives.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * const hardware = { device: hardwareNamed("v100").device, collectives: {} };
 * console.log(computeSeconds(stepProgram({ graph, settled: new Set() }, hardware)) > 0); // true
 * ```
 */
export const computeSeconds = (program: StepProgram): number =>
  program.reduce((sum, step) => sum + (step.kind === "kernel" ? step.price.seconds : 0), 0);
