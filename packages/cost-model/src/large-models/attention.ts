import { sweep } from "./elementwise.ts";
import { operator, type Operator, type PassSetting, work } from "./operator.ts";

/** Sizes of the attention heads on one rank. */
export interface AttentionSizes {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
}

/** Bytes of an f32, the data type of row sums. */
const sumBytes = 4;

/**
 * Operators of attention, softmax(Q·Kᵀ)·V. Plain attention has three operators: all scores, including masked scores,
 * are computed and pass through memory, and backward takes twice the flops of forward. FlashAttention is one operator:
 * it skips masked scores and saves one sum per row of scores. Its backward pass recomputes the scores and takes 2.5
 * times the flops of forward.
 *
 * Forward takes 4 · pairs · heads · headWidth flops per sequence. Plain attention: pairs = length · context.
 * FlashAttention: pairs = length · (context − (length − 1) / 2).
 * Source: Dao et al. 2022, arXiv 2205.14135 (FlashAttention); Dao 2023, arXiv 2307.08691, section 3.1.
 */
export const attention = (
  setting: PassSetting,
  { heads, keyValueHeads, headWidth }: AttentionSizes,
): readonly Operator[] => {
  const { batch, length, context, valueBytes, type, training, flashAttention } = setting;
  const queryBytes = batch * heads * length * headWidth * valueBytes;
  const keyBytes = batch * keyValueHeads * context * headWidth * valueBytes;

  if (flashAttention) {
    const pairs = length * (context - (length - 1) / 2);
    const flops = 4 * batch * pairs * heads * headWidth;
    const rowSumBytes = batch * heads * length * sumBytes;
    return [
      operator("flash attention", "attention", {
        type,
        forward: work(flops, queryBytes + 2 * keyBytes, queryBytes),
        // Reads Q, K, V, the result, the gradient of the result, and the sums; writes three gradients.
        backward: training
          ? [work(2.5 * flops, 3 * queryBytes + 2 * keyBytes + rowSumBytes, queryBytes + 2 * keyBytes)]
          : [],
        savedBytes: training ? queryBytes + 2 * keyBytes + rowSumBytes : 0,
        remadeBytes: training ? rowSumBytes : 0,
        remade: true,
        outputBytes: queryBytes,
      }),
    ];
  }

  const scores = batch * heads * length * context;
  const scoreBytes = scores * valueBytes;
  const flops = 2 * scores * headWidth;
  const twice = (first: Operator["forward"], second: Operator["forward"]) => (training ? [first, second] : []);
  return [
    operator("scores", "matmul", {
      type,
      forward: work(flops, queryBytes + keyBytes, scoreBytes),
      backward: twice(work(flops, scoreBytes + keyBytes, queryBytes), work(flops, scoreBytes + queryBytes, keyBytes)),
      savedBytes: training ? queryBytes + keyBytes : 0,
      remade: true,
      outputBytes: scoreBytes,
    }),
    {
      ...sweep(setting, "mask and softmax", "softmax", {
        read: scores,
        written: scores,
        flops: 6 * scores,
        backward: { read: 2 * scores, written: scores, flops: 4 * scores },
      }),
      remade: true,
    },
    operator("values", "matmul", {
      type,
      forward: work(flops, scoreBytes + keyBytes, queryBytes),
      backward: twice(work(flops, queryBytes + keyBytes, scoreBytes), work(flops, scoreBytes + queryBytes, keyBytes)),
      savedBytes: training ? scoreBytes + keyBytes : 0,
      remadeBytes: training ? scoreBytes : 0,
      remade: true,
      outputBytes: queryBytes,
    }),
  ];
};
