import { type CheckOptions, checkGradientValues, checkValues, conformanceCases } from "@skein/testing";
import { evaluate, multiply, NdArray, type Tensor } from "@skein/tensor-core";
import { createWebGpuBackend, DeviceLostError, type WebGpuBackend } from "../../src/index.ts";

/** Functions that the test calls in the worker. */
export interface ConformanceWorker {
  /** Opens the backend. @returns the name of its adapter. */
  openBackend(): Promise<string>;
  /**
   * Checks the values and gradients of one row. @returns the error message of the row, or undefined if the row passes.
   */
  checkRow(index: number): Promise<string | undefined>;
}

interface Opened {
  readonly backend: WebGpuBackend;
  readonly options: CheckOptions;
}

/** Whether the device flushes subnormals to 0. WebGPU allows flushing, and SwiftShader flushes. */
const flushesSubnormals = async (backend: WebGpuBackend): Promise<boolean> => {
  const product = await evaluate((x: Tensor, y: Tensor) => multiply(x, y), backend)(
    NdArray.from([1e-40]),
    NdArray.from([1]),
  );
  return product.item() === 0;
};

const open = async (): Promise<Opened> => {
  if (navigator.gpu === undefined) throw new Error("this browser has no WebGPU");
  const backend = await createWebGpuBackend({ gpu: navigator.gpu });
  return { backend, options: { subnormals: (await flushesSubnormals(backend)) ? "flushed" : "kept" } };
};

const serve = (): ConformanceWorker => {
  let opened: Opened | undefined;
  return {
    openBackend: async () => (opened ??= await open()).backend.facts.adapter,
    checkRow: async (index) => {
      const row = conformanceCases[index]!;
      try {
        const { backend, options } = (opened ??= await open());
        await checkValues(row, backend, options);
        if (row.gradient !== undefined) await checkGradientValues(row, backend);
        return undefined;
      } catch (error) {
        // The next row gets a new device.
        if (error instanceof DeviceLostError) opened = undefined;
        return error instanceof Error ? error.message : String(error);
      }
    },
  };
};

Object.assign(globalThis, serve());
