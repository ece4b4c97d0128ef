// Use only the compressors: keep the largest 5 % of a gradient, and see what error feedback holds back for the next step.
import { topKCompressor, withErrorFeedback } from "@skein/compressors";
import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";

const compressor = withErrorFeedback(topKCompressor({ density: 0.05 }));
const gradient = NdArray.from(Array.from({ length: 200 }, (_, i) => Math.sin(i * i) / (1 + (i % 17))));

const { payload, decoded, residual } = await evaluate((g: Tensor) => {
  const encoded = compressor.encode(g, compressor.init(g));
  return { payload: encoded.payload, decoded: compressor.decode(encoded.payload, g), residual: encoded.state.residual };
}, referenceBackend())(gradient);

const bytes = compressor.payloadBytes(gradient);
console.log(`kept ${payload.values.data.length} of ${gradient.data.length} entries: ${bytes} bytes instead of ${gradient.data.byteLength}`);
console.log("positions:", payload.indices.toNumbers().join(" "));

// What was sent and what was kept add up to the gradient.
const sent = decoded.toNumbers();
const kept = residual.toNumbers();
gradient.toNumbers().forEach((value, i) => {
  if (sent[i]! + kept[i]! !== value) throw new Error(`entry ${i}: ${sent[i]} + ${kept[i]} is not ${value}`);
});
