import { ArgumentError, type DeviceArray, matmul, NdArray, SpanRecorder, type Tensor, trace } from "@skein/tensor-core";
import type { Executable } from "@skein/tensor-core/backend";
import type { DeviceFacts, MatmulRequest } from "../kernel.ts";
import { kernelSeconds } from "../kernel-seconds.ts";
import { keepsSumOrder } from "../kernels/matmul/sum-order.ts";
import { matmulVariant, supportedVariants } from "../kernels/matmul/variants.ts";
import { createWebGpuBackend, type WebGpuBackend } from "../webgpu-backend.ts";
import type { MatmulMeasurement } from "./matmul-model.ts";

/** A matmul variant that was not timed for a product, and the reason. */
export interface RejectedVariant {
  readonly request: MatmulRequest;
  readonly variant: string;
  readonly reason: string;
}

export interface MatmulMeasurements {
  readonly samples: readonly MatmulMeasurement[];
  readonly rejected: readonly RejectedVariant[];
}

/** Options of a measurement: products, variants and number of repetitions. */
export interface MeasureOptions {
  /** Products to measure. Default: `defaultRequests`. */
  readonly requests?: readonly MatmulRequest[];
  /** Names of the variants to measure. Default: all variants that can be the fastest on the device. */
  readonly variants?: readonly string[];
  /** Number of timed runs of each variant, after one warm-up run. Minimum and default: 5. */
  readonly repeats?: number;
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * Whether a variant can be the fastest on this device. Excludes variants that only illustrate an optimization and, on
 * software adapters, variants with many barriers.
 */
const isCandidate = (name: string, { software }: Pick<DeviceFacts, "software">): boolean =>
  software ? /naive|direct|subgroup-8x4|matrix-vector/.test(name) : !/^(naive|tiled.*|transpose-direct.*)$/.test(name);

/**
 * Returns products that occur in training: square products, batches of activations with weights, their gradients (long
 * inner dimensions), products with few rows, and batches of small products as in attention. Sizes are smaller for
 * software adapters.
 */
export const defaultRequests = ({ software, f16 }: Pick<DeviceFacts, "software" | "f16">): readonly MatmulRequest[] => {
  const sizes = software ? [8, 48, 160, 384] : [16, 64, 256, 1024, 2560];
  const maxWork = software ? 5e7 : 2e10;
  const layouts = [
    [false, false],
    [false, true],
    [true, false],
  ] as const;
  const shapes = sizes.flatMap((rows) =>
    sizes.flatMap((columns) => sizes.map((inner) => ({ batch: 1, rows, columns, inner }))),
  );
  const heads = [64, 128].map((length) => ({ batch: software ? 4 : 96, rows: length, columns: length, inner: 64 }));
  const vectors = sizes.slice(1).map((size) => ({ batch: 1, rows: 1, columns: size, inner: size }));
  const dtypes = f16 && !software ? (["f32", "f16"] as const) : (["f32"] as const);
  return [...shapes, ...heads, ...vectors]
    .filter(({ batch, rows, columns, inner }) => 2 * batch * rows * columns * inner <= maxWork)
    .flatMap((shape) =>
      layouts.flatMap(([transposeA, transposeB]) =>
        dtypes.map((dtype): MatmulRequest => ({ ...shape, transposeA, transposeB, dtype })),
      ),
    );
};

/**
 * Returns an operand with numbers in [−1, 1) from a linear congruential generator, so that every device gets the same
 * values.
 */
const operand = (shape: readonly number[], dtype: "f32" | "f16", seed: number): NdArray => {
  let state = seed;
  const values = Float32Array.from({ length: shape.reduce((product, size) => product * size, 1) }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return NdArray.from(values, shape, dtype);
};

/** Returns the mean of the middle half of the times. Robust against outliers and a browser's coarse clock. */
const middleMean = (times: readonly number[]): number => {
  const sorted = [...times].sort((p, q) => p - q);
  const cut = Math.floor(sorted.length / 4);
  const middle = sorted.slice(cut, sorted.length - cut);
  return middle.reduce((sum, time) => sum + time, 0) / middle.length;
};

/** A variant that is slower than the best time by more than this factor is not timed again. */
const maxSlowdown = 8;

/**
 * Compares `y` with the result of the naive variant, with a tolerance for rounding in another order of additions.
 * Returns a description of the first difference, or undefined if the results agree.
 */
const disagreement = (
  y: ArrayLike<number>,
  naive: ArrayLike<number>,
  { inner, dtype }: MatmulRequest,
): string | undefined => {
  const absolute = 1e-6 * Math.max(1, Math.sqrt(inner)) * 4;
  const relative = dtype === "f16" ? 2e-3 : 1e-5;
  for (let i = 0; i < naive.length; i++) {
    const [ours, theirs] = [y[i]!, naive[i]!];
    if (!(Math.abs(ours - theirs) <= absolute + relative * Math.abs(theirs)))
      return `element ${i} is ${ours}, but ${theirs} with the naive variant`;
  }
  return undefined;
};

/**
 * Times variants of matmul on the device of `backend`, after checking each variant against the naive variant. Times are
 * measured with device timestamps, or with the host clock around queued runs if the device has no timestamps. The first
 * run is not timed.
 *
 * Opens a second device on the same adapter for the duration of the measurement.
 */
export const measureMatmul = async (
  backend: WebGpuBackend,
  options: MeasureOptions = {},
): Promise<MatmulMeasurements> => {
  const { facts } = backend;
  const { requests = defaultRequests(facts), repeats = 5, onProgress } = options;
  if (repeats < 5) throw new ArgumentError(`repeats is ${repeats}; a variant must be timed at least 5 times`);
  let forced = "naive";
  const bench = await createWebGpuBackend({ gpu: backend.device.instance, choices: { matmulVariant: () => forced } });
  const samples: MatmulMeasurement[] = [];
  const rejected: RejectedVariant[] = [];
  try {
    for (const [at, request] of requests.entries()) {
      onProgress?.(at, requests.length);
      const { batch, rows, columns, inner, transposeA, transposeB, dtype } = request;
      const a = bench.upload(operand([batch, ...(transposeA ? [inner, rows] : [rows, inner])], dtype, 1));
      const b = bench.upload(operand([batch, ...(transposeB ? [columns, inner] : [inner, columns])], dtype, 2));
      const { graph } = trace((x: Tensor, y: Tensor) => matmul(x, y, { transposeA, transposeB }), [a, b] as const);
      const compile = (name: string, spanSink?: SpanRecorder): Executable => {
        forced = name;
        return bench.compile(graph, spanSink && { spanSink });
      };
      const result = async (executable: Executable): Promise<ArrayLike<number>> => {
        const [y] = (await executable.run([a, b])) as [DeviceArray];
        const numbers = (await bench.download(y)).toNumbers();
        bench.free(y);
        return numbers;
      };
      const oracle = compile("naive");
      const naive = await result(oracle);
      oracle.release();
      const names =
        options.variants ??
        supportedVariants({ ...request, resultDtype: dtype }, facts)
          .filter((variant) => keepsSumOrder(variant, { ...request, resultDtype: dtype }, facts))
          .map(({ name }) => name)
          .filter((name) => isCandidate(name, facts));
      const seconds: { [variant: string]: number } = {};
      for (const name of names) {
        if (!matmulVariant(name)?.supports({ ...request, resultDtype: dtype }, facts)) continue;
        const spanSink = facts.timestamps ? new SpanRecorder() : undefined;
        try {
          const executable = compile(name, spanSink);
          const wrong = disagreement(await result(executable), naive, request);
          if (wrong === undefined)
            seconds[name] = await timeRuns(
              bench,
              executable,
              [a, b],
              repeats,
              spanSink,
              Math.min(...Object.values(seconds)),
            );
          else rejected.push({ request, variant: name, reason: wrong });
          executable.release();
        } catch (error) {
          rejected.push({ request, variant: name, reason: error instanceof Error ? error.message : String(error) });
        }
      }
      if (Object.keys(seconds).length > 0) samples.push({ request, seconds });
      bench.free(a);
      bench.free(b);
    }
    onProgress?.(requests.length, requests.length);
  } finally {
    bench.close();
  }
  return { samples, rejected };
};

/** A variant to time, with the number of repetitions, and the best time of all variants timed before, in seconds. */
interface Timed {
  readonly run: () => Promise<void>;
  readonly repeats: number;
  readonly best: number;
}

/**
 * Measures the seconds per run with the host clock. Several runs are queued together, so that their submission takes a
 * smaller share of the time.
 */
const secondsByClock = async ({ run, repeats, best }: Timed, queue: GPUQueue): Promise<number> => {
  const queued = 4;
  const times: number[] = [];
  for (let i = 0; i < repeats; i++) {
    const began = performance.now();
    for (let q = 0; q < queued; q++) await run();
    await queue.onSubmittedWorkDone();
    times.push((performance.now() - began) / 1e3 / queued);
    if (i === 0 && times[0]! > maxSlowdown * best) return times[0]!;
  }
  return middleMean(times);
};

const secondsByTimestamps = async ({ run, repeats, best }: Timed, spanSink: SpanRecorder): Promise<number> => {
  const times: number[] = [];
  for (let i = 0; i <= repeats; i++) {
    spanSink.spans.length = 0;
    await run();
    const time = kernelSeconds(spanSink.spans);
    if (i > 0) times.push(time);
    if (i === 1 && time > maxSlowdown * best) return time;
  }
  return middleMean(times);
};

/** Measures the seconds of one run. `best` is the best time of the variants timed before. */
const timeRuns = async (
  bench: WebGpuBackend,
  executable: Executable,
  inputs: readonly DeviceArray[],
  repeats: number,
  spanSink: SpanRecorder | undefined,
  best: number,
): Promise<number> => {
  const run = async (): Promise<void> => {
    for (const array of await executable.run(inputs)) bench.free(array);
  };
  const timed: Timed = { run, repeats, best };
  const seconds = spanSink === undefined ? 0 : await secondsByTimestamps(timed, spanSink);
  // Timestamps may be so coarse that the measured time of a small product is 0 s. Such a product is measured with the
  // host clock.
  return seconds > 0 ? seconds : secondsByClock(timed, bench.device.gpu.queue);
};
