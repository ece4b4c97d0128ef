import { createCpuBackend, prepareForCpu } from "@skein/cpu-kernels";
import type { KernelSample } from "@skein/cost-model/calibration";
import { nodeWork } from "@skein/cost-model/pricing";
import { median } from "@skein/measuring";
import {
  add,
  exp,
  type Graph,
  jit,
  matmul,
  multiply,
  NdArray,
  type Shape,
  SpanRecorder,
  sum,
  type Tensor,
  trace,
} from "@skein/tensor-core";

/** A function that runs one kernel, and the shapes of the function's arguments. */
interface GridRow {
  readonly fn: (...args: Tensor[]) => Tensor;
  readonly shapes: readonly Shape[];
}

const cube = [16, 64, 256, 512];
const lengths = [2 ** 8, 2 ** 12, 2 ** 16, 2 ** 20, 2 ** 22];

/**
 * Kernels to measure: matrix products from tiny to large and with thin operands, elementwise sweeps with few and many
 * flops per byte, and sums.
 */
const grid: readonly GridRow[] = [
  ...cube.map(
    (side): GridRow => ({
      fn: (a, b) => matmul(a!, b!),
      shapes: [
        [side, side],
        [side, side],
      ],
    }),
  ),
  ...cube.map(
    (side): GridRow => ({
      fn: (a, b) => matmul(a!, b!),
      shapes: [
        [8, side],
        [side, side],
      ],
    }),
  ),
  ...cube.map(
    (side): GridRow => ({
      fn: (a, b) => matmul(a!, b!),
      shapes: [
        [side, 16],
        [16, side],
      ],
    }),
  ),
  ...lengths.map((n): GridRow => ({ fn: (a, b) => add(multiply(a!, 2), b!), shapes: [[n], [n]] })),
  ...lengths.map((n): GridRow => ({ fn: (a) => exp(exp(a!)), shapes: [[n]] })),
  ...lengths.map((n): GridRow => ({ fn: (a) => sum(a!), shapes: [[n]] })),
];

const repeats = 7;

/**
 * Returns the operator and the amount of work (flops, bytes) of a benchmark graph. After preparation, each graph of the
 * grid consists of a single kernel.
 */
const workOf = (graph: Graph): Omit<KernelSample, "seconds"> => {
  const node = graph.nodes.findLast(({ op }) => op !== "input")!;
  return { operator: node.op, ...nodeWork(graph, node) };
};

/** Measures single kernels of the CPU backend over a grid of shapes. Takes a few seconds. */
export const measureKernelGrid = async (): Promise<KernelSample[]> => {
  const backend = await createCpuBackend();
  const samples: KernelSample[] = [];
  for (const { fn, shapes } of grid) {
    const spanSink = new SpanRecorder();
    const compiled = jit(fn as (...args: never[]) => Tensor, backend, { spanSink });
    const inputs = shapes.map((shape) => backend.upload(NdArray.zeros("f32", [...shape])));
    try {
      for (let i = 0; i < repeats; i++) backend.free((await compiled(...(inputs as never[]))) as never);
      // The first call is excluded, because it runs with cold caches.
      const times = spanSink.spans
        .flatMap(({ track, startSeconds, endSeconds }) => (track === "compute" ? endSeconds - startSeconds : []))
        .slice(1);
      const { graph } = trace(fn as never, shapes.map((shape) => ({ dtype: "f32", shape })) as never);
      samples.push({ ...workOf(prepareForCpu(graph)), seconds: Math.max(1e-9, median(times)) });
    } finally {
      for (const input of inputs) backend.free(input);
      compiled.release();
    }
  }
  return samples;
};
