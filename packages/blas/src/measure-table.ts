import { type Contraction, createCpuBackend, type Sgemm } from "@skein/cpu-kernels";
import { median } from "@skein/measuring";
import { type Backend, InvariantError, jit, NdArray, SpanRecorder, type Tensor } from "@skein/tensor-core";
import type { WasmMemory } from "@skein/tensor-core/backend";
import { type MeasuredKernel, measuredKernels } from "./measured-kernels.ts";
import type { MeasuredShape } from "./shape-table.ts";

/**
 * Limits for the repetitions when one shape is measured. A pair is one run in WebAssembly and one run with the BLAS.
 * Pairs are repeated until they have taken `seconds` in total, with a minimum of `least` and a maximum of `most` pairs.
 */
const pairs = { seconds: 0.016, least: 5, most: 31 };

/**
 * Prepares a kernel on one backend. The returned function runs the kernel and returns the kernel's duration in seconds.
 */
const prepare = async (
  { op, fn, shapes }: MeasuredKernel,
  backend: Backend,
): Promise<{ readonly call: () => Promise<number>; readonly release: () => void }> => {
  const spanSink = new SpanRecorder();
  const compiled = jit(fn as (...args: never[]) => readonly Tensor[], backend, { spanSink });
  const inputs = shapes.map((shape) =>
    backend.upload(NdArray.from(new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.5), [...shape])),
  );
  return {
    call: async () => {
      spanSink.spans.length = 0;
      const outputs = (await compiled(...(inputs as never[]))) as never[];
      for (const output of outputs) backend.free(output);
      const span = spanSink.spans.find(({ track, args }) => track === "compute" && args?.["operator"] === op);
      if (span === undefined) throw new InvariantError(`the measured function did not run ${op}`);
      return span.endSeconds - span.startSeconds;
    },
    release: () => {
      for (const input of inputs) backend.free(input);
      compiled.release();
    },
  };
};

export interface MeasureOptions {
  /** Called after each measured shape. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Kernels to measure. Default: all `measuredKernels`. */
  readonly kernels?: readonly MeasuredKernel[];
}

/**
 * Measures each kernel in WebAssembly and with a BLAS, and returns the median times. The two implementations alternate,
 * so that a slow phase of the machine affects both implementations. Takes about 30 s.
 *
 * @param open Returns the BLAS's matrix multiplication, bound to a memory.
 */
export const measureTable = async (
  open: (memory: WasmMemory) => Sgemm,
  options: MeasureOptions = {},
): Promise<MeasuredShape[]> => {
  const { onProgress, kernels = measuredKernels } = options;
  let measuredOp: string | undefined;
  let measuredContraction: Contraction | undefined;
  const prefers = (contraction: Contraction): boolean => {
    if (contraction.op === measuredOp) measuredContraction = contraction;
    return contraction.op === measuredOp;
  };
  const wasm = await createCpuBackend();
  const blas = await createCpuBackend({ blas: { identity: "measured", prefers, open } });
  const shapes: MeasuredShape[] = [];
  for (const kernel of kernels) {
    measuredOp = kernel.op;
    const [inWasm, byBlas] = [await prepare(kernel, wasm), await prepare(kernel, blas)];
    try {
      // The first call is not timed, because it binds kernels and runs with cold caches.
      await inWasm.call();
      await byBlas.call();
      const [wasmSeconds, blasSeconds]: [number[], number[]] = [[], []];
      let seconds = 0;
      for (let pair = 0; pair < pairs.most && (pair < pairs.least || seconds < pairs.seconds); pair++) {
        const ways = [
          () => inWasm.call().then((time) => wasmSeconds.push(time)),
          () => byBlas.call().then((time) => blasSeconds.push(time)),
        ];
        for (const way of pair % 2 === 0 ? ways : ways.toReversed()) await way();
        seconds += wasmSeconds.at(-1)! + blasSeconds.at(-1)!;
      }
      shapes.push({
        ...measuredContraction!,
        wasmMicroseconds: Number((1e6 * Math.max(1e-9, median(wasmSeconds))).toPrecision(4)),
        blasMicroseconds: Number((1e6 * Math.max(1e-9, median(blasSeconds))).toPrecision(4)),
      });
    } finally {
      inWasm.release();
      byBlas.release();
    }
    onProgress?.(shapes.length, kernels.length);
  }
  return shapes;
};
