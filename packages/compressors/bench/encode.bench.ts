// How many copies of a gradient do encoding, decoding and a whole aggregation cost on one core? Run: node bench/encode.bench.ts [part of a name] [--elements 25e6]
import { type DeviceArray, flattenTree, jit, NdArray, type Tensor } from "@skein/tensor-core";
import { createCpuBackend } from "@skein/cpu-kernels";
import { measure, printMeasurement } from "@skein/measuring";
import { normal } from "@skein/testing";
import {
  acpSgdAggregator,
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

const { argv } = process;
const elements = Number(argv[argv.indexOf("--elements") + 1] ?? NaN) || 25e6;
const only = argv.slice(2).find((argument, i, all) => !argument.startsWith("--") && all[i - 1] !== "--elements");

// A matrix, for those that factor; all others see it flat.
const side = Math.floor(Math.sqrt(elements));
const bucket = bucketOf([{ path: "weight", shape: [side, side] }]);
const count = side * side;
const density = 0.01;

// Each is named as in job files; wrappers show what they add.
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

const backend = await createCpuBackend();
const block = normal([1_000_000], 7).data as Float32Array;
const host = Float32Array.from({ length: count }, (_, i) => block[i % block.length]! * (1 + i * 1e-9));
const gradient = backend.upload(new NdArray("f32", [count], host));
const key = backend.upload(NdArray.from([1, 2], [2], "u32"));
const rank = backend.upload(NdArray.scalar(0, "i32"));
const step = backend.upload(NdArray.scalar(1, "u32"));
const mesh = { data: 1 };

const copied = new Float32Array(count);
const copy = await measure(() => copied.set(host));
if (copied.some((value, i) => value !== host[i])) throw new Error("the copy is not one");
printMeasurement(`copy of ${(count / 1e6).toFixed(1)}M f32`, copy, { amount: 4 * count, unit: "B" });

const context = (k: Tensor, r: Tensor, s: Tensor): AggregateContext => ({ axis: "data", key: k, rank: r, step: s });
const free = (tree: unknown): void => flattenTree<DeviceArray>(tree).leaves.forEach((leaf) => backend.free(leaf));

const time = async (name: string, call: () => Promise<unknown>): Promise<void> => {
  const measured = await measure(async () => free(await call()), { samples: 7 });
  printMeasurement(`${name} (${(measured.median / copy.median).toFixed(1)} copies)`, measured, { amount: 4 * count, unit: "B" });
};

const isCompressor = (aggregator: Aggregator): aggregator is Compressor => "encode" in aggregator;

for (const [name, aggregator] of Object.entries(aggregators)) {
  if (only !== undefined && !name.includes(only)) continue;
  const init = jit(() => aggregator.init(bucket), backend, { mesh });
  const state = await init();

  const aggregate = jit(
    (g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => {
      const { mean, sent, state: next } = aggregator.aggregate(g, own, bucket, context(k, r, s));
      return { mean, sent, next };
    },
    backend,
    { mesh },
  );
  // Of one rank alone, the mean is what it sent.
  const first = (await aggregate(gradient, state, key, rank, step)) as { readonly mean: DeviceArray; readonly sent: DeviceArray };
  const [mean, sent] = [(await backend.download(first.mean)).data, (await backend.download(first.sent)).data];
  const wrong = mean.findIndex((value, i) => !(Math.abs((value as number) - (sent[i] as number)) <= 1e-5));
  if (wrong !== -1) throw new Error(`${name} is not timed: element ${wrong} of the mean is ${mean[wrong]}, but ${sent[wrong]} was sent`);
  free(first);
  aggregate.release();

  const run = jit(
    (g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => {
      const { mean: result, state: next } = aggregator.aggregate(g, own, bucket, context(k, r, s));
      return { result, next };
    },
    backend,
    { mesh },
  );
  await time(`${name}: aggregate`, () => run(gradient, state, key, rank, step));
  run.release();

  if (isCompressor(aggregator)) {
    const encode = jit((g: Tensor, own: unknown, k: Tensor, r: Tensor, s: Tensor) => aggregator.encode(g, own, context(k, r, s)), backend, {
      mesh,
    });
    const encoded = await encode(gradient, state, key, rank, step);
    await time(`${name}: encode`, () => encode(gradient, state, key, rank, step));
    encode.release();
    const decode = jit(
      (payload: unknown, k: Tensor, r: Tensor, s: Tensor) => aggregator.decode(payload, bucket, context(k, r, s)),
      backend,
      {
        mesh,
      },
    );
    await time(`${name}: decode`, () => decode(encoded.payload as never, key, rank, step));
    decode.release();
    free(encoded);
  }
  free(state);
  init.release();
}
