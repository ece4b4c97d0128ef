import type { KernelNode, OperatorName, OperatorParams, Params } from "@skein/tensor-core/backend";

/**
 * Properties of the device that planning may depend on, as plain data. Plans can be made and inspected without a
 * device.
 */
export interface DeviceFacts {
  /** Vendor, architecture and device name of the adapter. Key for measurements of this adapter. */
  readonly adapter: string;
  /** Whether the adapter runs on the CPU, such as lavapipe or SwiftShader. */
  readonly software: boolean;
  /** Whether `f16` is supported in arithmetic and storage. */
  readonly f16: boolean;
  readonly subgroups: boolean;
  readonly minSubgroupSize: number;
  readonly maxSubgroupSize: number;
  readonly timestamps: boolean;
  /** Shapes of subgroup matrix products that the adapter supports. Empty if the adapter lacks the feature. */
  readonly subgroupMatrices: readonly SubgroupMatrixShape[];
  readonly maxWorkgroupSize: number;
  readonly maxWorkgroupBytes: number;
  readonly maxBindings: number;
  readonly maxBindingBytes: number;
  readonly maxBufferBytes: number;
  /** Alignment of binding offsets in bytes; at least 16. */
  readonly bindingAlignment: number;
}

/** Size of the product that one subgroup computes: `y[rows, columns] += a[rows, inner] · b[inner, columns]`. */
export interface SubgroupMatrixShape {
  readonly operands: "f16" | "f32";
  readonly result: "f16" | "f32";
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/**
 * Source of a binding: operand `input` or result `output` of the node, or block `scratch` or `constants` of the
 * kernel's plan, by index.
 */
export type BindingSource =
  | { readonly input: number }
  | { readonly output: number }
  | { readonly scratch: number }
  | { readonly constants: number };

/** A buffer that a pass reads or writes. */
export interface Binding {
  /** Name of the WGSL variable. Must not be used for anything else in the shader. */
  readonly name: string;
  /** WGSL type of the variable, a runtime-sized array: `array<f32>`, `array<vec4<f32>>`, `array<atomic<u32>>`. */
  readonly type: string;
  readonly source: BindingSource;
  /** Access mode. `write` also allows atomics, and reading data that the pass has written. */
  readonly access: "read" | "write";
}

/**
 * One dispatch, described as plain data.
 *
 * - Operands at the same address share one variable, so a result computed in place can be read under either name.
 * - Memory after the last element of an operand, up to a multiple of 16 bytes, has undefined content and may be
 *   overwritten.
 * - An operand without elements is bound to a few bytes of undefined content.
 */
export interface Pass {
  /** Name of the variant in traces and error messages, such as `matmul tiled 64x64`. */
  readonly label: string;
  readonly bindings: readonly Binding[];
  /** Number of invocations per workgroup; workgroups are one-dimensional. */
  readonly workgroupSize: number;
  /** Number of workgroups, less than 2³². The executable distributes them over the dimensions of a grid. */
  readonly groups: number;
  /**
   * WGSL that defines `fn main(group: u32, lane: u32)`, with the index of the workgroup (below `groups`) and of the
   * invocation (below `workgroupSize`). With the feature `subgroups`: `fn main(group: u32, lane: u32, subgroup_lane:
   * u32, subgroup_size: u32)`. `group` is uniform, and barriers are allowed. The executable declares the bindings and
   * `sizes.<name>`.
   */
  readonly code: string;
  readonly features?: readonly ("f16" | "subgroups" | "subgroup-matrix")[];
  /**
   * u32 fields of the uniform `sizes`: numbers that are not part of the shader text, so that nodes of different sizes
   * share one pipeline.
   */
  readonly sizes?: { readonly [name: string]: number };
}

/** Plan of one node: passes in order of execution, and memory blocks that are allocated while the node runs. */
export interface KernelPlan {
  /** Size in bytes of each scratch block. Contents are undefined before the first pass. */
  readonly scratch?: readonly number[];
  /** Read-only data blocks, written when the graph is compiled. */
  readonly constants?: readonly Uint8Array[];
  readonly passes: readonly Pass[];
}

/**
 * Implementation of one operator on WebGPU. Built-in kernels have one file per operator in `ops/`, named after the
 * operator's file in tensor-core, with WGSL in `kernels/<family>/`. User kernels are passed to `createWebGpuBackend`.
 */
export interface Kernel<P extends Params = Params> {
  readonly op: string;
  /**
   * Returns the reason why this node cannot run on this device, as a sentence with a suggested fix, or undefined if the
   * node can run.
   */
  readonly refuses?: (node: KernelNode<P>, facts: DeviceFacts) => string | undefined;
  /**
   * Chooses variants and fixes sizes. Called once per node at compile time, and only if at least one output has
   * elements.
   *
   * @param placed For each input, whether the input already has its final position in output 0: as an operand of
   * `concat`, or because the output reuses the input's memory.
   */
  readonly plan: (
    node: KernelNode<P>,
    facts: DeviceFacts,
    choices: KernelChoices,
    placed: readonly boolean[],
  ) => KernelPlan;
}

/** Declares a kernel of a built-in operator, with typed parameters. */
export const kernelOf = <Op extends OperatorName>(kernel: Kernel<OperatorParams[Op]> & { readonly op: Op }): Kernel =>
  kernel as unknown as Kernel;

/** Kernel settings that were measured on one device. If a setting is absent, the kernel uses its own rule. */
export interface KernelChoices {
  /** Returns the variant of a product `y[m, n] = Σₖ a·b` that was fastest on this device. */
  readonly matmulVariant?: (request: MatmulRequest) => string;
  /**
   * Maximum work per submission to the device, as flops plus bytes. Default: far below the amount of work after which
   * operating systems reset a device.
   */
  readonly workPerSubmission?: number;
}

/** Properties of a matrix product that the choice of a matmul variant may depend on. */
export interface MatmulRequest {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly dtype: "f32" | "f16";
}
