import { byteLength, type Graph, InvariantError, UnsupportedError } from "@skein/tensor-core";
import {
  type CollectivePlan,
  isUserOperator,
  kernelNodeOf,
  type MemoryPlan,
  type Node,
  nodeCost,
  type Place,
  planCollective,
  specOf,
  valueKey,
  roleOf,
} from "@skein/tensor-core/backend";
import type { Binding, BindingSource, KernelChoices, DeviceFacts, KernelPlan, Pass } from "./kernel.ts";
import { checkPlan } from "./check-plan.ts";
import { kernels as ownKernels, type KernelTable } from "./kernel-table.ts";
import { resolveBindings, type PlacedVariable, type BufferRange } from "./resolve-bindings.ts";
import { gridGroups, gridOf, shaderModule } from "./shader.ts";
import type { BindingKind } from "./pipeline-cache.ts";

/** A lowered pass: one pipeline, and one dispatch per slice. */
export interface DispatchStep {
  readonly kind: "dispatch";
  readonly node: Node;
  readonly label: string;
  readonly code: string;
  readonly bindingKinds: readonly BindingKind[];
  readonly variables: readonly PlacedVariable[];
  readonly copies: readonly { readonly from: BufferRange; readonly toOffset: number }[];
  /** Words of the uniform `sizes`. Undefined if the shader has no sizes. */
  readonly sizes: readonly number[] | undefined;
  readonly slices: readonly Slice[];
  /** Flops plus bytes of the dispatch, used to limit the work of a submission. */
  readonly work: number;
}

export interface Slice {
  readonly grid: readonly [number, number, number];
  /**
   * Words of the uniform `slice`: the first workgroup of the slice, and the number of workgroups. Absent: the pass has
   * a single slice.
   */
  readonly words?: readonly [first: number, groups: number];
}

export type LoweredStep =
  | DispatchStep
  | {
      readonly kind: "start";
      readonly node: Node;
      readonly plan: CollectivePlan;
      readonly inputs: readonly BufferRange[];
      readonly outputs: readonly BufferRange[];
    }
  | { readonly kind: "done"; readonly node: Node; readonly start: number }
  | { readonly kind: "position"; readonly node: Node; readonly output: BufferRange };

/**
 * A graph lowered to a flat list of steps over numbered memory regions. Order of the regions: slabs of the memory plan,
 * scratch, constants, copies, the region for empty operands, inputs, outputs.
 */
export interface Lowered {
  readonly steps: readonly LoweredStep[];
  readonly slabBytes: readonly number[];
  readonly scratchBytes: number;
  readonly copyBytes: number;
  readonly constants: readonly { readonly offset: number; readonly bytes: Uint8Array }[];
  readonly constantBytes: number;
}

export interface Regions {
  readonly scratch: number;
  readonly constants: number;
  readonly copies: number;
  /** Index of the region for operands without elements. */
  readonly empty: number;
  readonly firstInput: number;
  readonly firstOutput: number;
  readonly count: number;
}

export const regionsOf = (numSlabs: number, numInputs: number, numOutputs: number): Regions => ({
  scratch: numSlabs,
  constants: numSlabs + 1,
  copies: numSlabs + 2,
  empty: numSlabs + 3,
  firstInput: numSlabs + 4,
  firstOutput: numSlabs + 4 + numInputs,
  count: numSlabs + 4 + numInputs + numOutputs,
});

/** Returns the bytes of the region for operands without elements: one slot for each binding of a pass. */
export const emptyBytes = (facts: DeviceFacts): number => facts.maxBindings * facts.bindingAlignment;

const alignUp = (bytes: number, alignment: number): number => Math.ceil(bytes / alignment) * alignment;

/**
 * Returns the maximum work of one submission, as flops plus bytes: far below the amount of work after which an
 * operating system resets a device.
 */
export const workPerSubmission = (facts: DeviceFacts, choices: KernelChoices): number =>
  choices.workPerSubmission ?? (facts.software ? 1e10 : 5e10);

const slicesOf = (groups: number, work: number, bound: number): Slice[] => {
  const numSlices = Math.min(groups, Math.ceil(work / bound));
  if (numSlices <= 1) return [{ grid: gridOf(groups) }];
  const each = Math.ceil(groups / numSlices);
  return Array.from({ length: Math.ceil(groups / each) }, (_, i): Slice => {
    const [first, size] = [i * each, Math.min(each, groups - i * each)];
    return { grid: gridOf(size), words: [first, size] };
  });
};

/** Returns the flops plus bytes of a node. */
const workOf = (graph: Graph, node: Node): number => {
  const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
  return flops + bytesRead + bytesWritten;
};

/**
 * Returns, for each input of a node, whether its data is already at its final position in output 0, so that the kernel
 * need not copy the input.
 */
const placedInputs = (graph: Graph, plan: MemoryPlan, node: Node): readonly boolean[] => {
  const output = plan.places.get(valueKey({ node: node.id, output: 0 }))!;
  return (
    plan.placedOperands.get(node.id) ??
    node.inputs.map((ref) => {
      const { region, index, offset } = plan.places.get(valueKey(ref))!;
      const hasBytes = byteLength(specOf(graph, ref)) > 0;
      return hasBytes && region === output.region && index === output.index && offset === output.offset;
    })
  );
};

/** Lowers a planned graph to steps. Needs only a device's `DeviceFacts`, not the device itself. */
export const lower = (
  graph: Graph,
  plan: MemoryPlan,
  facts: DeviceFacts,
  choices: KernelChoices,
  kernels: KernelTable = ownKernels,
): Lowered => {
  const regions = regionsOf(plan.slabBytes.length, graph.inputs.length, graph.outputs.length);
  const { bindingAlignment } = facts;
  const steps: LoweredStep[] = [];
  const startOf = new Map<number, number>();
  const constants: { offset: number; bytes: Uint8Array }[] = [];
  let [scratchBytes, copyBytes, constantBytes] = [0, 0, 0];

  const rangeAt = (place: Place, bytes: number): BufferRange => ({
    region:
      place.index +
      (place.region === "workspace" ? 0 : place.region === "input" ? regions.firstInput : regions.firstOutput),
    offset: place.offset,
    bytes: alignUp(bytes, 16),
  });
  const rangeOf = (node: number, output: number): BufferRange => {
    const place = plan.places.get(valueKey({ node, output }));
    if (place === undefined) throw new InvariantError(`value ${node}:${output} is missing in the memory plan`);
    return rangeAt(place, byteLength(graph.nodes[node]!.specs[output]!));
  };

  const lowerPass = (node: Node, kernelPlan: KernelPlan, pass: Pass, blocks: Blocks, work: number): DispatchStep => {
    if (pass.groups < 1 || pass.workgroupSize > facts.maxWorkgroupSize || pass.bindings.length > facts.maxBindings)
      throw new InvariantError(
        `pass ${pass.label} has ${pass.groups} workgroups of ${pass.workgroupSize} and ${pass.bindings.length} bindings, which exceeds the limits of ${facts.adapter}`,
      );
    const at = (source: BindingSource, slot: number): BufferRange => {
      const found =
        "input" in source
          ? rangeOf(node.inputs[source.input]!.node, node.inputs[source.input]!.output)
          : "output" in source
            ? rangeOf(node.id, source.output)
            : "scratch" in source
              ? {
                  region: regions.scratch,
                  offset: blocks.scratch[source.scratch]!,
                  bytes: alignUp(kernelPlan.scratch![source.scratch]!, 16),
                }
              : {
                  region: regions.constants,
                  offset: blocks.constants[source.constants]!,
                  bytes: alignUp(kernelPlan.constants![source.constants]!.byteLength, 16),
                };
      return found.bytes > 0 ? found : { region: regions.empty, offset: slot * bindingAlignment, bytes: 16 };
    };
    const resolved = resolveBindings(
      pass.bindings.map((binding: Binding, slot) => ({ binding, at: at(binding.source, slot) })),
      regions.copies,
      bindingAlignment,
    );
    for (const { from, toOffset } of resolved.copies) copyBytes = Math.max(copyBytes, toOffset + from.bytes);
    const slices = slicesOf(pass.groups, work, workPerSubmission(facts, choices));
    const sliced = slices[0]!.words !== undefined;
    const guarded = slices.some(({ grid, words }) => gridGroups(grid) !== (words?.[1] ?? pass.groups));
    return {
      kind: "dispatch",
      node,
      label: pass.label,
      code: shaderModule({ pass, variables: resolved.variables, renamed: resolved.renamed, guarded, sliced }),
      bindingKinds: [
        ...resolved.variables.map(({ writable }): BindingKind => (writable ? "write" : "read")),
        ...(pass.sizes === undefined ? [] : (["uniform"] as const)),
        ...(sliced ? (["uniform"] as const) : []),
      ],
      variables: resolved.variables,
      copies: resolved.copies,
      sizes: pass.sizes && Object.values(pass.sizes),
      slices,
      work,
    };
  };

  for (const node of graph.nodes) {
    const role = roleOf(node);
    if (role === "argument") continue;
    if (role === "start") {
      startOf.set(node.id, steps.length);
      steps.push({
        kind: "start",
        node,
        plan: planCollective(graph, node),
        inputs: node.inputs.map((ref) => rangeOf(ref.node, ref.output)),
        outputs: node.specs.map((_, output) => rangeOf(node.id, output)),
      });
    } else if (role === "done") {
      steps.push({ kind: "done", node, start: startOf.get(node.inputs[0]!.node)! });
    } else if (role === "position") {
      steps.push({ kind: "position", node, output: rangeOf(node.id, 0) });
    } else if (!plan.settled.has(node.id) && node.specs.some((spec) => byteLength(spec) > 0)) {
      const kernelNode = kernelNodeOf(graph, node);
      const kernelPlan = kernels[node.op]!.plan(kernelNode, facts, choices, placedInputs(graph, plan, node));
      if (isUserOperator(node.op)) checkPlan(kernelPlan, kernelNode, facts);
      const blocks: Blocks = { scratch: [], constants: [] };
      let end = 0;
      for (const bytes of kernelPlan.scratch ?? []) {
        if (bytes > facts.maxBindingBytes)
          throw new UnsupportedError(
            `${node.op}: its kernel needs ${bytes} bytes of scratch memory, but a kernel of ${facts.adapter} may bind ${facts.maxBindingBytes} (maxStorageBufferBindingSize); use a smaller batch`,
          );
        blocks.scratch.push(end);
        end += alignUp(bytes, bindingAlignment);
      }
      scratchBytes = Math.max(scratchBytes, end);
      for (const bytes of kernelPlan.constants ?? []) {
        blocks.constants.push(constantBytes);
        constants.push({ offset: constantBytes, bytes });
        constantBytes += alignUp(bytes.byteLength, bindingAlignment);
      }
      const work = workOf(graph, node) / Math.max(1, kernelPlan.passes.length);
      for (const pass of kernelPlan.passes)
        if (pass.groups > 0) steps.push(lowerPass(node, kernelPlan, pass, blocks, work));
    }
  }
  return { steps, slabBytes: plan.slabBytes, scratchBytes, copyBytes, constants, constantBytes };
};

/** Byte offsets of a node's scratch blocks and constant blocks in the scratch region and the constants region. */
interface Blocks {
  readonly scratch: number[];
  readonly constants: number[];
}
