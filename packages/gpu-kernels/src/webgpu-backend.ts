import { type Backend, elementCount, type Graph, NdArray, spanned } from "@skein/tensor-core";
import {
  ArrayLedger,
  type CompileOptions,
  type Executable,
  expandCompositions,
  hostArrayType,
  type InPlaceRule,
  kernelTable,
  type MemoryPlan,
  optimize,
  type OwnedArray,
  planMemory,
  standardInPlaceRule,
  widenHalf,
} from "@skein/tensor-core/backend";
import { type ArrayBlock, releaseBlock, uploadBytes } from "./array-block.ts";
import { BufferPool } from "./buffer-pool.ts";
import { type DeviceOptions, openDevice, type WebGpuDevice } from "./device.ts";
import { WebGpuExecutable } from "./executable.ts";
import { type HostMemory, plainHostMemory, readBuffer } from "./host-transfer.ts";
import type { DeviceFacts, Kernel, KernelChoices } from "./kernel.ts";
import { type KernelTable, kernels as ownKernels } from "./kernel-table.ts";
import { hasInstruction } from "./kernels/fused/expressions.ts";
import { checkSupport } from "./support.ts";
import { PipelineCache } from "./pipeline-cache.ts";

/** Options that select the GPU of a backend and configure its kernels. */
export interface WebGpuBackendOptions extends DeviceOptions {
  /** Allocator of host memory for operands and results of collectives. Default: ordinary memory of this thread. */
  readonly hostMemory?: HostMemory;
  /**
   * Kernel settings that were measured on this device, such as the `choices` of `tuneMatmul`. Default: the kernels' own
   * rules.
   */
  readonly choices?: KernelChoices;
  /**
   * Kernels of user-defined operators (`defineOperator`). An operator without a kernel runs as its composition.
   * Default: none.
   */
  readonly kernels?: readonly Kernel[];
}

/**
 * A WebGPU backend, with the capabilities and memory use of its device.
 *
 * A run, a copy or an upload throws `DeviceMemoryError` if the device has no memory after idle buffers were released
 * and a second attempt failed. The failed call has no effect, and may be retried later. `upload` returns before the
 * device has confirmed the allocation. If the allocation fails, the next use of the array throws this error, and the
 * array can only be freed. While the device allocates memory for a copy, `download` borrows the array, like a run
 * borrows its arguments.
 */
export interface WebGpuBackend extends Backend {
  readonly facts: DeviceFacts;
  readonly device: WebGpuDevice;
  /** Returns the bytes in use by arrays, and by workspaces of executables that have run. */
  bytesInUse(): number;
  /** Returns `bytesInUse` plus the bytes of idle buffers that are kept for reuse. */
  bytesReserved(): number;
  /** Destroys the device, so that the process can exit. All arrays on the device are lost. */
  close(): void;
}

/**
 * Rule that decides whether a result may share memory with an operand. In addition to the standard rule, both must have
 * the same dtype, because a shared binding has one WGSL type.
 */
const inPlaceRule: InPlaceRule = (node, input, output) =>
  standardInPlaceRule(node, input, output) && node.inputs[input]!.dtype === node.outputs[output]!.dtype;

const expand = (source: Graph, facts: DeviceFacts, kernels: KernelTable): Graph =>
  expandCompositions(source, ({ name }, node) =>
    kernels[name] === undefined ? hasInstruction(name) : kernels[name].refuses?.(node, facts) === undefined,
  );

const withoutHalf = (graph: Graph, facts: DeviceFacts): Graph =>
  widenHalf(graph, facts.f16 ? ["bf16"] : ["f16", "bf16"]);

/**
 * Returns the graph that is compiled for a traced graph: compositions replace operators without a kernel or
 * instruction, the standard passes run within the device's limits, and products of bf16 are widened, as well as
 * products of f16 if the device does not support f16.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(multiply(x, 2), 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(prepareForWebGpu(graph, minimalDevice).nodes.some(({ op }) => op === "fused")); // true
 * ```
 */
export const prepareForWebGpu = (
  source: Graph,
  facts: DeviceFacts,
  collectiveOrder?: readonly number[],
  kernels: KernelTable = ownKernels,
): Graph =>
  optimize(withoutHalf(expand(source, facts, kernels), facts), {
    fuse: { maxOperands: facts.maxBindings },
    schedule: collectiveOrder ?? true,
  });

/**
 * Plans the memory of a prepared graph on a device.
 *
 * @param donate Indices of the inputs whose memory may be written.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(Object.keys(planForWebGpu(prepareForWebGpu(graph, minimalDevice), minimalDevice)).length > 0); // true
 * ```
 */
export const planForWebGpu = (graph: Graph, facts: DeviceFacts, donate: readonly number[] = []): MemoryPlan =>
  planMemory(graph, {
    donate,
    alignment: Math.max(256, facts.bindingAlignment),
    viewAlignment: facts.bindingAlignment,
    maxSlabBytes: facts.maxBufferBytes,
    inPlace: inPlaceRule,
  });

/**
 * Creates the WebGPU backend on one device.
 *
 * @throws AdapterError if there is no adapter.
 * @example
 * ```ts
 * const backend = await createWebGpuBackend({ gpu: await openNodeGpu() }); // in a page: { gpu: navigator.gpu }
 * const y = await evaluate((x: Tensor) => multiply(x, 2), backend)(NdArray.from([1, 2]));
 * console.log(y.toNumbers()); // [2, 4]
 * await backend.close();
 * ```
 */
export const createWebGpuBackend = async (options: WebGpuBackendOptions): Promise<WebGpuBackend> => {
  const device = await openDevice(options);
  const { gpu, facts } = device;
  const pool: BufferPool = new BufferPool(device, {
    reclaim: () => ledger.reclaim(),
    describeLive: () => ledger.describeLive(),
  });
  const pipelines = new PipelineCache(device);
  const ledger: ArrayLedger<ArrayBlock> = new ArrayLedger<ArrayBlock>((block) => releaseBlock(pool, block));
  const { hostMemory = plainHostMemory, choices = {} } = options;
  const kernels = kernelTable(ownKernels, options.kernels ?? [], "plan");

  /**
   * Submits a copy of an array to a staging buffer: synchronously, unless the memory of the array or of the buffer is
   * still being allocated. The array is borrowed until the copy has been submitted.
   */
  const copyToStaging = async (array: OwnedArray<ArrayBlock>): Promise<GPUBuffer> => {
    const request = { bytes: array.bytes, kind: "staging" } as const;
    const { buffer } = array.lend(false);
    try {
      const source = buffer instanceof Promise ? await buffer : buffer;
      const staging = pool.takeIdle(request) ?? (await pool.take([request]))[0]!;
      const encoder = gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(source, 0, staging, 0, Math.ceil(array.bytes / 4) * 4);
      gpu.queue.submit([encoder.finish()]);
      return staging;
    } finally {
      ledger.giveBack(array);
    }
  };

  return {
    name: "webgpu",
    facts,
    device,
    compile: (source: Graph, { donate = [], spanSink, collectiveOrder }: CompileOptions = {}): Executable => {
      device.check();
      const host = <T>(name: string, work: () => T): T => spanned(spanSink, { name, track: "host" }, work);
      const graph = host("optimize", () => prepareForWebGpu(source, facts, collectiveOrder, kernels));
      checkSupport(graph, facts, kernels);
      const plan = host("plan memory", () => planForWebGpu(graph, facts, donate));
      const parts = { graph, plan, device, pool, pipelines, ledger, hostMemory, choices, donate, spanSink, kernels };
      return host("bind kernels", () => new WebGpuExecutable(parts));
    },
    workspaceBytes: (source, { donate = [] } = {}) =>
      planForWebGpu(prepareForWebGpu(source, facts, undefined, kernels), facts, donate).workspaceBytes,
    upload: (array) =>
      ledger.open({ dtype: array.dtype, shape: array.shape }, uploadBytes(device, pool, array.bytes())),
    download: async (array) => {
      const owned = ledger.own(array);
      const copy = new Uint8Array(owned.bytes);
      device.check();
      const staging = await copyToStaging(owned);
      try {
        await readBuffer(device, staging, copy);
      } finally {
        pool.release(staging);
      }
      return new NdArray(
        array.dtype,
        array.shape,
        new hostArrayType[array.dtype](copy.buffer, 0, elementCount(array.shape)),
      );
    },
    free: (array) => ledger.free(ledger.own(array)),
    reclaim: () => ledger.reclaim(),
    bytesInUse: () => pool.bytesInUse,
    bytesReserved: () => pool.bytesReserved,
    close: () => device.close(),
  };
};
