import { type Backend, elementCount, type Graph, NdArray, spanned } from "@skein/tensor-core";
import {
  ArrayLedger,
  type CompileOptions,
  expandCompositions,
  type Executable,
  hostArrayType,
  type InPlaceRule,
  kernelTable,
  optimize,
  type OwnedArray,
  type MemoryPlan,
  planMemory,
  standardInPlaceRule,
  widenHalf,
} from "@skein/tensor-core/backend";
import { type ArrayBlock, releaseBlock, uploadBytes } from "./array-block.ts";
import { BufferPool } from "./buffer-pool.ts";
import { type Device, type DeviceOptions, openDevice } from "./device.ts";
import { WebGpuExecutable } from "./executable.ts";
import { type HostMemory, plainHostMemory, readBuffer } from "./host-transfer.ts";
import type { Choices, DeviceFacts, Kernel } from "./kernel.ts";
import { kernels as ownKernels, type KernelTable } from "./kernel-table.ts";
import { checkSupport } from "./support.ts";
import { PipelineCache } from "./pipeline-cache.ts";

/** Which GPU a backend runs on, and what it knows of it. */
export interface WebGpuBackendOptions extends DeviceOptions {
  /** Memory for what collectives carry. Default: plain memory of this thread. */
  readonly hostMemory?: HostMemory;
  /** What was learned on this device. Default: the kernels' own rules. */
  readonly choices?: Choices;
  /**
   * Kernels for operators of the user's (`defineOperator`); without one, a backend runs an operator's composition.
   * Default: none.
   */
  readonly kernels?: readonly Kernel[];
}

/**
 * A WebGPU backend also tells what its device can do and what it holds.
 *
 * A run, a copy or an upload for which the device has no room is a `DeviceMemoryError`, after idle buffers were given
 * back and a second try; nothing has changed then, and it may be tried again later. `upload` returns before the device
 * has answered: that error is thrown by whatever uses the array, which can only be freed. While the device makes room
 * for a copy, `download` has the array lent, as a run has its arguments.
 */
export interface WebGpuBackend extends Backend {
  readonly facts: DeviceFacts;
  readonly device: Device;
  /** Bytes of arrays, and of workspaces from their first run on. */
  bytesInUse(): number;
  /** Those, and bytes of buffers that are kept to be used again. */
  bytesReserved(): number;
  /** End the device, so that the process can exit. Arrays on it are gone. */
  close(): void;
}

/** In place only where reader and writer see the same WGSL type. */
const inPlaceRule: InPlaceRule = (node, input, output) =>
  standardInPlaceRule(node, input, output) && node.inputs[input]!.dtype === node.outputs[output]!.dtype;

const expand = (source: Graph, facts: DeviceFacts, kernels: KernelTable): Graph =>
  expandCompositions(
    source,
    ({ name }, node) => kernels[name] !== undefined && kernels[name].refuses?.(node, facts) === undefined,
  );

const withoutHalf = (graph: Graph, facts: DeviceFacts): Graph =>
  widenHalf(graph, facts.f16 ? ["bf16"] : ["f16", "bf16"]);

/**
 * What is compiled in place of a traced graph: compositions of operators without a kernel, the standard passes within
 * the device's bounds, bf16 products widened, and f16 ones where it has no f16.
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

/** Where the values of a prepared graph lie on a device. @param donate inputs whose memory may be written. */
export const planForWebGpu = (graph: Graph, facts: DeviceFacts, donate: readonly number[] = []): MemoryPlan =>
  planMemory(graph, {
    donate,
    alignment: Math.max(256, facts.bindingAlignment),
    viewAlignment: facts.bindingAlignment,
    maxSlabBytes: facts.maxBufferBytes,
    inPlace: inPlaceRule,
  });

/**
 * Make the WebGPU backend on one device.
 *
 * @throws AdapterError where there is no adapter.
 * @example const backend = await createWebGpuBackend({ gpu: navigator.gpu }); // in Node: { gpu: await openNodeGpu() }
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
   * Submit a copy of an array into a staging buffer: at once, unless the array or the buffer has to be waited for; the
   * array is lent meanwhile.
   */
  const copyOff = async (array: OwnedArray<ArrayBlock>): Promise<GPUBuffer> => {
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
      const staging = await copyOff(owned);
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
