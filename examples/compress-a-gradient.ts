// Uses only the compressors: sends the largest 5 % of a gradient, and prints what error feedback keeps for the next
// step.
import { bucketOf, topKCompressor, withErrorFeedback } from "@skein/compressors";
import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";

const sparse = topKCompressor({ density: 0.05 });
const compressor = withErrorFeedback(sparse);
const gradient = NdArray.from(Array.from({ length: 200 }, (_, i) => Math.sin(i * i) / (1 + (i % 17))));
const bucket = bucketOf([{ path: "weight", shape: gradient.shape }]);

const { sent, state } = await evaluate(
  (g: Tensor) => compressor.aggregate(g, compressor.init(bucket), bucket, { axis: "data" }),
  referenceBackend(),
)(gradient);

const [sentValues, residual] = [sent.toNumbers(), state.residual.toNumbers()];
const positions = [...sentValues.keys()].filter((i) => sentValues[i] !== 0);
console.log(
  `sent ${positions.length} of ${gradient.data.length} entries: ${sparse.payloadBytes(bucket)} bytes instead of ${gradient.data.byteLength}`,
);
console.log("positions:", positions.join(" "));

// The sent values and the residual add up to the gradient.
gradient.toNumbers().forEach((value, i) => {
  if (sentValues[i]! + residual[i]! !== value)
    throw new Error(`entry ${i}: ${sentValues[i]} + ${residual[i]} is not ${value}`);
});
