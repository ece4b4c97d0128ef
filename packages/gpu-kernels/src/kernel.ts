import type { KernelNode, OperatorName, OperatorParams, Params } from "@skein/tensor-core/backend";

/**
 * What a kernel may ask of the device while it is planned. Plain data: plans are made and inspected without a device.
 */
export interface DeviceFacts {
  /** Vendor, architecture and device of the adapter: the key of everything measured on it. */
  readonly adapter: string;
  /** A processor pretends to be a GPU: lavapipe, SwiftShader. */
  readonly software: boolean;
  /** `f16` in arithmetic and storage. */
  readonly f16: boolean;
  readonly subgroups: boolean;
  readonly minSubgroupSize: number;
  readonly maxSubgroupSize: number;
  readonly timestamps: boolean;
  /** Shapes of subgroup matrix products that the adapter has; empty where the feature is missing. */
  readonly subgroupMatrices: readonly SubgroupMatrixShape[];
  readonly maxWorkgroupSize: number;
  readonly maxWorkgroupBytes: number;
  readonly maxBindings: number;
  readonly maxBindingBytes: number;
  readonly maxBufferBytes: number;
  /** Bindings begin at multiples of it, bytes: what the adapter asks for, and at least 16. */
  readonly bindingAlignment: number;
}

/** `y[rows, columns] += a[rows, inner] · b[inner, columns]` by one subgroup. */
export interface SubgroupMatrixShape {
  readonly operands: "f16" | "f32";
  readonly result: "f16" | "f32";
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/**
 * What a binding shows: operand `input` or `output` of the node, the `scratch` block or the `constants` block of that
 * index in the kernel's plan.
 */
export type BindingSource =
  | { readonly input: number }
  | { readonly output: number }
  | { readonly scratch: number }
  | { readonly constants: number };

/** A buffer that a pass reads or writes. */
export interface Binding {
  /** Name of the variable in WGSL; used for nothing else in the shader. */
  readonly name: string;
  /** WGSL type of the variable, a runtime-sized array: `array<f32>`, `array<vec4<f32>>`, `array<atomic<u32>>`. */
  readonly type: string;
  readonly source: BindingSource;
  /** `write` also covers reading what the pass wrote, and atomics. */
  readonly access: "read" | "write";
}

/**
 * One dispatch, as plain data.
 *
 * - Operands that lie in one place are one variable, so a result that is computed in place may be read through either
 *   name.
 * - Memory behind the last element of an operand, up to a multiple of 16 bytes, may be written with anything and holds
 *   anything.
 * - An operand without elements is bound to a few bytes that mean nothing.
 */
export interface Pass {
  /** Variant, as shown in traces and errors: `matmul tiled 64x64`. */
  readonly label: string;
  readonly bindings: readonly Binding[];
  /** Invocations of one workgroup, in one dimension. */
  readonly workgroupSize: number;
  /** Workgroups, any number below 2³²; the executable spreads them over the dimensions of a grid. */
  readonly groups: number;
  /**
   * WGSL that defines `fn main(group: u32, lane: u32)`: workgroup of `groups`, invocation of `workgroupSize`. With the
   * feature `subgroups`: `fn main(group: u32, lane: u32, subgroup_lane: u32, subgroup_size: u32)`. `group` is uniform,
   * barriers are welcome. Bindings and `sizes.<name>` are declared by the executable.
   */
  readonly code: string;
  readonly features?: readonly ("f16" | "subgroups" | "subgroup-matrix")[];
  /**
   * Numbers that should not be part of the text, so that nodes of many sizes share one pipeline: u32 fields of `sizes`.
   */
  readonly sizes?: { readonly [name: string]: number };
}

/** How one node runs: passes in order, over blocks of memory that live as long as the node. */
export interface KernelPlan {
  /** Bytes of each scratch block; contents are undefined at the first pass. */
  readonly scratch?: readonly number[];
  /** Read-only data, written once when the graph is compiled. */
  readonly constants?: readonly Uint8Array[];
  readonly passes: readonly Pass[];
}

/**
 * How one operator runs on WebGPU. Ours are one file per operator in `ops/`, named like the operator's file in
 * tensor-core; WGSL in `kernels/<family>/`. Those of users are given to `createWebGpuBackend`.
 */
export interface Kernel<P extends Params = Params> {
  readonly op: string;
  /** Why this node cannot run on this device, as a sentence with the cure; absent when it can. */
  readonly refuses?: (node: KernelNode<P>, facts: DeviceFacts) => string | undefined;
  /**
   * Choose variants and fix sizes; called once per node at compile time, and only when at least one output has
   * elements.
   *
   * @param placed by input: whether it lies in output 0 already, where it belongs: as the part of a `concat` that it
   * becomes, or because the output took over its memory.
   */
  readonly plan: (node: KernelNode<P>, facts: DeviceFacts, choices: Choices, placed: readonly boolean[]) => KernelPlan;
}

/** A kernel for an operator of ours: its nodes have the parameters of that. */
export const kernelOf = <Op extends OperatorName>(kernel: Kernel<OperatorParams[Op]> & { readonly op: Op }): Kernel =>
  kernel as unknown as Kernel;

/** Decisions that were learned on this device. Absent entries leave a kernel to its own rule. */
export interface Choices {
  /** The variant of a product `y[m, n] = Σₖ a·b` that was fastest on this device. */
  readonly matmulVariant?: (request: MatmulRequest) => string;
  /** Flops and bytes of one submission to the device. Default: far below what makes an operating system reset it. */
  readonly workPerSubmission?: number;
}

/** What a choice among matmul variants may depend on. */
export interface MatmulRequest {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly dtype: "f32" | "f16";
}
