import {
  ArrayLedger,
  type Backend,
  byteLength,
  type CompileOptions,
  elementCount,
  type Executable,
  type Graph,
  hostArrayType,
  type InPlaceRule,
  NdArray,
  optimize,
  planMemory,
  standardInPlaceRule,
  widenHalf,
} from "@skein/tensor-core";
import { BufferPool } from "./buffer-pool.ts";
import { type Device, type DeviceOptions, openDevice } from "./device.ts";
import { padded, WebGpuExecutable } from "./executable.ts";
import { type HostMemory, plainHostMemory, readBuffer } from "./host-transfer.ts";
import type { Choices, DeviceFacts } from "./kernel.ts";
import { checkSupport } from "./lower.ts";
import { PipelineCache } from "./pipeline-cache.ts";

export interface WebGpuBackendOptions extends DeviceOptions {
  /** Memory for what collectives carry. Default: plain memory of this thread. */
  readonly hostMemory?: HostMemory;
  /** What was learned on this device. Default: the kernels' own rules. */
  readonly choices?: Choices;
}

/** A WebGPU backend also tells what its device can do and what it holds. */
export interface WebGpuBackend extends Backend {
  readonly facts: DeviceFacts;
  readonly device: Device;
  /** Bytes of arrays and workspaces. */
  bytesInUse(): number;
  /** Bytes of buffers that are kept to be used again. */
  bytesReserved(): number;
  /** End the device, so that the process can exit. Arrays on it are gone. */
  close(): void;
}

/** In place only where reader and writer see the same WGSL type. */
const inPlaceRule: InPlaceRule = (node, input, output, inputSpec) =>
  standardInPlaceRule(node, input, output, inputSpec) && inputSpec.dtype === node.specs[output]!.dtype;

/** What is compiled in place of a traced graph: the standard passes within the device's bounds, f16 products widened where it has no f16. */
export const prepareForWebGpu = (source: Graph, facts: DeviceFacts, collectiveOrder?: readonly number[]): Graph =>
  optimize(facts.f16 ? source : widenHalf(source), { fuse: { maxOperands: facts.maxBindings }, schedule: collectiveOrder ?? true });

/**
 * Make the WebGPU backend on one device.
 *
 * @throws AdapterError where there is no adapter.
 * @example const backend = await createWebGpuBackend({ gpu: navigator.gpu }); // in Node: { gpu: await openNodeGpu() }
 */
export const createWebGpuBackend = async (options: WebGpuBackendOptions): Promise<WebGpuBackend> => {
  const device = await openDevice(options);
  const { gpu, facts } = device;
  const pool = new BufferPool(device);
  const pipelines = new PipelineCache(device);
  const ledger = new ArrayLedger<GPUBuffer>((buffer) => pool.release(buffer));
  const { hostMemory = plainHostMemory, choices = {} } = options;

  return {
    name: "webgpu",
    facts,
    device,
    compile: (source: Graph, { donate = [], tracer, collectiveOrder }: CompileOptions = {}): Executable => {
      device.check();
      const graph = prepareForWebGpu(source, facts, collectiveOrder);
      checkSupport(graph, facts);
      const plan = planMemory(graph, {
        donate,
        alignment: Math.max(256, facts.bindingAlignment),
        viewAlignment: facts.bindingAlignment,
        maxSlabBytes: facts.maxBufferBytes,
        inPlace: inPlaceRule,
      });
      return new WebGpuExecutable({ graph, plan, device, pool, pipelines, ledger, hostMemory, choices, donate, tracer });
    },
    upload: (array) => {
      const buffer = pool.take(byteLength(array));
      if (byteLength(array) > 0) gpu.queue.writeBuffer(buffer, 0, padded(array.bytes()));
      return ledger.open({ dtype: array.dtype, shape: array.shape }, buffer);
    },
    download: async (array) => {
      const { memory, bytes } = ledger.own(array);
      device.check();
      const copy = new Uint8Array(bytes);
      const staging = pool.take(bytes, "staging");
      try {
        const encoder = gpu.createCommandEncoder();
        encoder.copyBufferToBuffer(memory, 0, staging, 0, Math.ceil(bytes / 4) * 4);
        gpu.queue.submit([encoder.finish()]);
        await readBuffer(device, staging, copy);
      } finally {
        pool.release(staging, "staging");
      }
      return new NdArray(array.dtype, array.shape, new hostArrayType[array.dtype](copy.buffer, 0, elementCount(array.shape)));
    },
    free: (array) => ledger.free(ledger.own(array)),
    bytesInUse: () => pool.bytesInUse,
    bytesReserved: () => pool.bytesReserved,
    close: () => device.close(),
  };
};
