// Cost of encoding, decoding and full aggregation on one core or on a device, relative to copying the gradient.
// Run: node bench/encode.bench.ts [part of a name] [--elements 25e6] [--density 0.01] [--backend cpu | webgpu]
import { parseArgs } from "node:util";
import {
  type Backend,
  type DeviceArray,
  flattenTree,
  jit,
  NdArray,
  type Tensor,
  UnsupportedError,
} from "@skein/tensor-core";
import { createCpuBackend } from "@skein/cpu-kernels";
import { createWebGpuBackend, DeviceMemoryError } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import { type Measurement, measure, printMeasurement, summarize } from "@skein/measuring";
import { normalArray } from "@skein/testing";
import { acpSgdAggregator } from "../src/acp-sgd.ts";
import {
  type AggregateContext,
  type Aggregator,
  agoqAggregator,
  bucketOf,
  type Compressor,
  dgcAggregator,
  eightBitCompressor,
  gaussianKCompressor,
  gTopKAggregator,
  identityCompressor,
  majorityVoteAggregator,
  msTopKCompressor,
  okTopKAggregator,
  oneBitCompressor,
  powerSgdAggregator,
  qsgdCompressor,
  randomKCompressor,
  scaledSignCompressor,
  ternGradAggregator,
  thresholdCompressor,
  topKCompressor,
  withEf21,
  withErrorFeedback,
} from "../src/index.ts";

const { values: options, positionals } = parseArgs({
  options: {
    elements: { type: "string", default: "25e6" },
    density: { type: "string", default: "0.01" },
    backend: { type: "string", default: "cpu" },
  },
  allowPositionals: true,
});
const elements = Number(options.elements);
const only = positionals[0];

// A matrix for low-rank compressors; other compressors use it as a flat vector.
const side = Math.floor(Math.sqrt(elements));
const bucket = bucketOf([{ path: "weight", shape: [side, side] }]);
const count = side * side;
const density = Number(options.density);

// Names as in job files. Wrappers are listed separately, to show their additional cost.
const aggregators: { readonly [name: string]: Aggregator } = {
  identity: identityCompressor(),
  "identity with error feedback": withErrorFeedback(identityCompressor()),
  "top-k": topKCompressor({ density }),
  "top-k with error feedback": withErrorFeedback(topKCompressor({ density })),
  "top-k with EF21": withEf21(topKCompressor({ density })),
  "random-k": randomKCompressor({ density }),
  threshold: thresholdCompressor({ threshold: 2.6, capacity: 0.02 }),
  "gaussian-k": gaussianKCompressor({ density }),
  "ms-top-k": msTopKCompressor({ density }),
  dgc: dgcAggregator({ density }),
  "g-top-k": gTopKAggregator({ density }),
  "ok-top-k": okTopKAggregator({ density }),
  "scaled-sign": scaledSignCompressor(),
  "scaled-sign with error feedback": withErrorFeedback(scaledSignCompressor()),
  "majority-vote": majorityVoteAggregator(),
  "one-bit with error feedback": withErrorFeedback(oneBitCompressor()),
  "eight-bit": eightBitCompressor(),
  "eight-bit, stochastic": eightBitCompressor({ rounding: "stochastic" }),
  qsgd: qsgdCompressor(),
  "qsgd of 4 bits": qsgdCompressor({ levels: 7 }),
  "tern-grad": ternGradAggregator(),
  agoq: agoqAggregator(),
  "power-sgd with error feedback": withErrorFeedback(powerSgdAggregator({ rank: 4 })),
  "acp-sgd with error feedback": withErrorFeedback(acpSgdAggregator({ rank: 4, compute: "p" })),
};

const block = normalArray([1_000_000], 7).data as Float32Array;
const host = Float32Array.from({ length: count }, (_, i) => block[i % block.length]! * (1 + i * 1e-9));

/** A backend to benchmark, with functions that measure calls on the backend. */
interface Bench {
  readonly name: string;
  readonly backend: Backend;
  /**
   * Measures the time in milliseconds from a call until its results are available. Compilation and binding in the first
   * call are excluded.
   */
  readonly measureCall: (call: () => Promise<unknown>) => Promise<Measurement>;
  /** Measures the time in milliseconds to copy the gradient, for comparison with the compressors. */
  readonly measureCopy: () => Promise<Measurement>;
  close(): void;
}

const requireCopy = (copied: Float32Array): void => {
  if (copied.some((value, i) => value !== host[i])) throw new Error("the copy is not one");
};

const openCpu = async (): Promise<Bench> => ({
  name: "one core",
  backend: await createCpuBackend(),
  measureCall: (call) => measure(call, { samples: 7 }),
  measureCopy: async () => {
    const copied = new Float32Array(count);
    const measured = await measure(() => copied.set(host));
    requireCopy(copied);
    return measured;
  },
  close: () => undefined,
});

/**
 * Limits of the trials per measurement on a device: minimum and maximum trial count, and total time in milliseconds. A
 * device has caches to warm up, but no JIT compiler. A software device takes seconds per call.
 */
const deviceTrials = { least: 3, most: 21, milliseconds: 5000 };

const openDevice = async (): Promise<Bench> => {
  const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
  const { gpu } = backend.device;
  const measureCall = async (call: () => Promise<unknown>): Promise<Measurement> => {
    const run = async (): Promise<number> => {
      const began = performance.now();
      await call();
      await backend.device.settle(gpu.queue.onSubmittedWorkDone());
      return performance.now() - began;
    };
    await run(); // compiles pipelines
    const times: number[] = [];
    const spent = (): number => times.reduce((sum, time) => sum + time, 0);
    while (
      times.length < deviceTrials.least ||
      (times.length < deviceTrials.most && spent() < deviceTrials.milliseconds)
    )
      times.push(await run());
    return { ...summarize(times), best: Math.min(...times) };
  };
  return {
    name: backend.facts.adapter,
    backend,
    measureCall,
    measureCopy: async () => {
      const usage = 0x80 | 0x04 | 0x08; // STORAGE | COPY_SRC | COPY_DST
      const [from, to] = [0, 1].map(() => gpu.createBuffer({ size: 4 * count, usage })) as [GPUBuffer, GPUBuffer];
      const staging = gpu.createBuffer({ size: 4 * count, usage: 0x01 | 0x08 }); // MAP_READ | COPY_DST
      const submitCopy = async (target: GPUBuffer, source: GPUBuffer): Promise<void> => {
        const encoder = gpu.createCommandEncoder();
        encoder.copyBufferToBuffer(source, 0, target, 0, 4 * count);
        gpu.queue.submit([encoder.finish()]);
      };
      gpu.queue.writeBuffer(from, 0, host);
      const measured = await measureCall(() => submitCopy(to, from));
      await submitCopy(staging, to);
      await backend.device.settle(staging.mapAsync(1)); // MAP_READ
      requireCopy(new Float32Array(staging.getMappedRange()));
      for (const buffer of [from, to, staging]) buffer.destroy();
      return measured;
    },
    close: () => backend.close(),
  };
};

const benches: { readonly [backend: string]: () => Promise<Bench> } = { cpu: openCpu, webgpu: openDevice };
const open = benches[options.backend];
if (open === undefined || !(elements >= 1))
  throw new Error("--backend is cpu or webgpu, --elements a number of 1 or more");
const { name: machine, backend, measureCall, measureCopy, close } = await open();
console.log(machine);
const gradient = backend.upload(new NdArray("f32", [count], host));
const key = backend.upload(NdArray.from([1, 2], [2], "u32"));
const rank = backend.upload(NdArray.scalar(0, "i32"));
const step = backend.upload(NdArray.scalar(1, "u32"));
const mesh = { data: 1 };

const copy = await measureCopy();
printMeasurement(`copy of ${(count / 1e6).toFixed(1)}M f32`, copy, { amount: 4 * count, unit: "B" });

const context = (k: Tensor, r: Tensor, s: Tensor): AggregateContext => ({ axis: "data", key: k, rank: r, step: s });
const free = (tree: unknown): void => flattenTree<DeviceArray>(tree).leaves.forEach((leaf) => backend.free(leaf));

const time = async (name: string, call: () => Promise<unknown>): Promise<void> => {
  const measured = await measureCall(async () => free(await call()));
  printMeasurement(`${name} (${(measured.median / copy.median).toFixed(1)} copies)`, measured, {
    amount: 4 * count,
    unit: "B",
  });
};

const isCompressor = (aggregator: Aggregator): aggregator is Compressor => "encode" in aggregator;

/** Checks that the mean over a single rank equals the gradient part that the rank sent. */
const checkMean = async (name: string, aggregator: Aggregator, state: unknown): Promise<void> => {
  const aggregate = jit(
    (g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => {
      const { mean, sent, state: next } = aggregator.aggregate(g, own, bucket, context(k, r, s));
      return { mean, sent, next };
    },
    backend,
    { mesh },
  );
  const first = (await aggregate(gradient, state as never, key, rank, step)) as {
    readonly mean: DeviceArray;
    readonly sent: DeviceArray;
  };
  const [mean, sent] = [(await backend.download(first.mean)).data, (await backend.download(first.sent)).data];
  const wrong = mean.findIndex((value, i) => !(Math.abs((value as number) - (sent[i] as number)) <= 1e-5));
  if (wrong !== -1)
    throw new Error(
      `${name} is not timed: element ${wrong} of the mean is ${mean[wrong]}, but ${sent[wrong]} was sent`,
    );
  free(first);
  aggregate.release();
};

const timeAggregate = async (name: string, aggregator: Aggregator, state: unknown): Promise<void> => {
  const run = jit(
    (g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => {
      const { mean: result, state: next } = aggregator.aggregate(g, own, bucket, context(k, r, s));
      return { result, next };
    },
    backend,
    { mesh },
  );
  await time(`${name}: aggregate`, () => run(gradient, state as never, key, rank, step));
  run.release();
};

const timeCodec = async (name: string, compressor: Compressor, state: unknown): Promise<void> => {
  const encode = jit(
    (g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => compressor.encode(g, own, context(k, r, s)),
    backend,
    {
      mesh,
    },
  );
  const encoded = await encode(gradient, state as never, key, rank, step);
  await time(`${name}: encode`, () => encode(gradient, state as never, key, rank, step));
  encode.release();
  const decode = jit(
    (payload: unknown, k: Tensor, r: Tensor, s: Tensor) => compressor.decode(payload, bucket, context(k, r, s)),
    backend,
    {
      mesh,
    },
  );
  await time(`${name}: decode`, () => decode(encoded.payload as never, key, rank, step));
  decode.release();
  free(encoded);
};

/**
 * Runs a benchmark, and prints the error instead of a result if the device has too little memory or too small bindings.
 */
const orRefusal = async (name: string, work: () => Promise<void>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof UnsupportedError || error instanceof DeviceMemoryError)) throw error;
    console.log(`${name}: not timed: ${error.message.replaceAll(/\s*\n\s*/g, " ")}`);
  }
};

for (const [name, aggregator] of Object.entries(aggregators)) {
  if (only !== undefined && !name.includes(only)) continue;
  await orRefusal(name, async () => {
    const init = jit(() => aggregator.init(bucket), backend, { mesh });
    const state = await init();
    init.release();
    await checkMean(name, aggregator, state);
    await timeAggregate(name, aggregator, state);
    if (isCompressor(aggregator)) await timeCodec(name, aggregator, state);
    free(state);
  });
}
close();
