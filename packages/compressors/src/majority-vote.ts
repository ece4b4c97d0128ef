import {
  absolute,
  allGather,
  allToAll,
  bitwiseAnd,
  bitwiseOr,
  broadcastTo,
  cast,
  concat,
  equal,
  foldIn,
  greater,
  isFinite,
  logicalNot,
  maximum,
  packBits,
  pad,
  randomBits,
  reduceMax,
  reshape,
  slice,
  split,
  type Tensor,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Aggregator } from "./aggregator.ts";
import { addPlanes, constantPlanes, planesFor } from "./bit-planes.ts";
import { lengthOf } from "./bucket.ts";
import { ownKey } from "./own-key.ts";

/**
 * A set bit wherever more than half of the P words, u32 of one shape, have one; where half of them have, the bit of
 * `casting`.
 */
const majorityOf = (words: readonly Tensor[], casting: Tensor): Tensor => {
  const votes = words.length % 2 === 0 ? [...words, casting] : words;
  const needed = (votes.length + 1) / 2;
  // Counting starts so that the highest plane of the sum says whether `needed` has been reached.
  const goal = 2 ** planesFor(votes.length - needed);
  const sums = addPlanes(
    [constantPlanes(goal - needed, casting.shape), ...votes.map((vote) => [vote])],
    goal + votes.length - needed,
  );
  return sums.at(-1)!;
};

/** Words that one rank counts, of those that hold n signs. */
const shardWords = (count: number, numRanks: number): number => Math.ceil(Math.ceil(count / 32) / numRanks);

/**
 * Let each rank vote with the sign of its gradient: `mean_j = sign(Σ_r sign(g_r,j))`. Every entry of the mean is +1 or
 * −1, whatever the size of the gradient, so the learning rate is what each parameter moves in a step.
 *
 * The sign of 0 is drawn, by each rank for itself, and so is the outcome where votes tie, by the rank that counts them:
 * the exchange needs a key. A fixed +1 would be a force of its own: of four ranks with nothing but noise, 3 in 8 votes
 * tie.
 *
 * Each rank counts the votes on a P-th of all entries: signs go to the counting ranks by all-to-all, the outcome goes
 * to all by all-gather, both one bit per entry. Votes are counted by bitwise addition, 32 entries at a time.
 *
 * `sent` is the mean itself: a vote says nothing of how much of a gradient went into it, and this is the share that
 * adds up to P times the mean. So error feedback has no meaning here; use `scaledSignCompressor` for it.
 *
 * A NaN or an infinity on any rank makes the whole mean NaN: a word behind the signs says so.
 *
 * Cost: `2 · 4(P−1) · (⌈⌈n/32⌉/P⌉ + 1)` bytes sent, about `2(P−1)/P · n/8`; all-gather of the signs would take `(P−1) ·
 * n/8`.
 * Source: Bernstein et al. 2018, arXiv 1802.04434 (signSGD); 2019, arXiv 1810.05291 (majority vote).
 */
export const majorityVoteAggregator = (): Aggregator<[]> => ({
  name: "majority vote",
  biased: true,
  scope: "tensor",
  init: () => [],
  aggregate: (gradient, state, bucket, context) => {
    const { axis, collective } = context;
    const key = ownKey("majorityVoteAggregator", context);
    const numRanks = axisSize(axis);
    const count = lengthOf(bucket);
    const own = shardWords(count, numRanks);
    const drawn = randomBits(foldIn(key, 0), [Math.ceil(count / 32)]);
    const signs = bitwiseOr(packBits(greater(gradient, 0)), bitwiseAnd(packBits(equal(gradient, 0)), drawn));
    const votes = reshape(pad(signs, [[0, own * numRanks - signs.shape[0]!]]), [numRanks, own]);
    // The greatest magnitude is finite where all are; of none it is −∞.
    const greatest = maximum(reduceMax(absolute(gradient)), 0);
    const broken = reshape(cast(logicalNot(isFinite(greatest)), "u32"), [1, 1]);

    const ballots = allToAll(concat([votes, broadcastTo(broken, [numRanks, 1])], { dim: 1 }), axis, collective);
    const outcome = majorityOf(
      split(slice(ballots, [0, 0], [numRanks, own]), numRanks),
      randomBits(foldIn(key, 1), [1, own]),
    );
    const anyBroken = reduceMax(slice(ballots, [0, own]), { dims: 0, keepDims: true });

    const outcomes = allGather(concat([outcome, anyBroken], { dim: 1 }), axis, collective);
    const words = slice(
      reshape(slice(outcomes, [0, 0], [numRanks, own]), [numRanks * own]),
      [0],
      [Math.ceil(count / 32)],
    );
    const whole = equal(reduceMax(slice(outcomes, [0, own])), 0);
    const vote = where(unpackBits(words, count), 1, -1);
    const mean = where(whole, vote, NaN);
    return { mean, sent: mean, state };
  },
  bytesSent: (bucket, worldSize) => 8 * (worldSize - 1) * (shardWords(lengthOf(bucket), worldSize) + 1),
});
