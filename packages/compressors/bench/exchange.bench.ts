// Graph size of a step with gradient exchange, and time to trace and optimize this graph. Run: node
// bench/exchange.bench.ts
import { type Tensor, type TensorSpec, trace } from "@skein/tensor-core";
import { optimize, validateGraph } from "@skein/tensor-core/backend";
import { measure, printMeasurement } from "@skein/measuring";
import {
  type Aggregator,
  bucketPerTensor,
  bucketsOfSize,
  exchange,
  exchangeBytes,
  identityCompressor,
  initExchange,
  topKCompressor,
  withErrorFeedback,
} from "../src/index.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { collectiveBytes } from "../test/collective-bytes.ts";

const numRanks = 8;
const spec = (...shape: number[]): TensorSpec => ({ dtype: "f32", shape });

// Tensors of a ResNet-18: weight, gain and shift of twenty convolutions, then the head.
const widths = [64, 64, 64, 64, 64, 128, 128, 128, 128, 128, 256, 256, 256, 256, 256, 512, 512, 512, 512, 512];
const gradients = {
  layers: widths.map((width, i) => ({
    gain: spec(width),
    shift: spec(width),
    weight: spec(3, 3, widths[i - 1] ?? 3, width),
  })),
  head: { bias: spec(10), weight: spec(512, 10) },
};

const compressors: readonly Aggregator[] = [identityCompressor(), withErrorFeedback(topKCompressor({ density: 0.01 }))];
const plans: readonly (readonly [string, BucketPlan])[] = [
  ["a bucket per tensor", bucketPerTensor(gradients)],
  ["buckets of 4 MB", bucketsOfSize(gradients, 4e6)],
];

for (const compressor of compressors) {
  for (const [planName, buckets] of plans) {
    const options = { compressor, buckets };
    const record = () =>
      trace(
        (own: unknown) => exchange(own, initExchange(own, options), { ...options, axis: "data" }),
        [gradients] as unknown as [Tensor],
        {
          mesh: { data: numRanks },
        },
      ).graph;
    const graph = record();
    const optimized = optimize(graph);
    validateGraph(graph);
    validateGraph(optimized);
    const [sent, expected] = [collectiveBytes(graph), exchangeBytes(gradients, options, numRanks)];
    if (Math.abs(sent - expected) > 1e-9 * expected)
      throw new Error(
        `${compressor.name}, ${planName}: the graph sends ${sent} bytes, but exchangeBytes says ${expected}`,
      );
    const name = `${compressor.name}, ${planName}`;
    printMeasurement(`${name}: trace to ${graph.nodes.length} nodes`, await measure(record));
    printMeasurement(`${name}: optimize to ${optimized.nodes.length} nodes`, await measure(() => optimize(graph)));
  }
}
