// Steps of attention between its products, for products that run outside of WebAssembly. The steps process complete
// rows of scores.
import { deltas, visible, weightsOfRow } from "./attention";
import { maxOfRow, scaleRow, sumOfExps } from "./softmax";
import { logOf } from "./transcendental";

/**
 * Replaces scaled scores [rows, wide] with softmax weights, in place, and writes the logsumexp of each row. If
 * `causal`, query i attends to keys up to its own position: `ahead` is the position of key 0 minus the position of
 * query 0. Weights of hidden keys are 0. The logsumexp of a query without visible keys is −∞.
 */
export function attentionWeights(scores: usize, logSums: usize, rows: i32, wide: i32, causal: bool, ahead: i32): void {
  const rowBytes = <usize>wide << 2;
  for (let i = 0; i < rows; i++) {
    const bytes = <usize>visible(causal, ahead - i, wide) << 2;
    if (bytes < rowBytes) memory.fill(scores + bytes, 0, rowBytes - bytes);
    if (bytes == 0) {
      store<f32>(logSums, -Infinity);
    } else {
      const largest = maxOfRow(scores, bytes);
      const total = sumOfExps(scores, scores, bytes, largest, true);
      scaleRow(scores, scores, bytes, <f32>1 / total);
      store<f32>(logSums, largest + logOf<f32>(total));
    }
    scores += rowBytes;
    logSums += 4;
  }
}

/** Computes δ = Σ g · out over the width, for each of `queries` rows. */
export function attentionDeltas(to: usize, g: usize, out: usize, queries: i32, width: i32): void {
  deltas(to, g, out, queries, <usize>width << 2);
}

/**
 * Replaces scores [rows, wide] with softmax weights, and weight gradients with score gradients, both in place. Entries
 * of hidden keys become 0.
 */
export function attentionWeightGradients(
  weights: usize, gradients: usize, logSums: usize, delta: usize, rows: i32, wide: i32, causal: bool, ahead: i32, scale: f32,
): void {
  const rowBytes = <usize>wide << 2;
  for (let i = 0; i < rows; i++) {
    const bytes = <usize>visible(causal, ahead - i, wide) << 2;
    weightsOfRow(weights, gradients, bytes, scale, load<f32>(logSums), load<f32>(delta));
    if (bytes < rowBytes) {
      memory.fill(weights + bytes, 0, rowBytes - bytes);
      memory.fill(gradients + bytes, 0, rowBytes - bytes);
    }
    weights += rowBytes;
    gradients += rowBytes;
    logSums += 4;
    delta += 4;
  }
}
