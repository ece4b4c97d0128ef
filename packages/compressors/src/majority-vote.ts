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
 * Returns the bitwise majority of P words, u32 of one shape: a bit is set if more than half of the words set it. For a
 * tie, the bit of `casting` decides.
 */
const majorityOf = (words: readonly Tensor[], casting: Tensor): Tensor => {
  const votes = words.length % 2 === 0 ? [...words, casting] : words;
  const needed = (votes.length + 1) / 2;
  // The count starts at an offset, so that the highest plane of the sum is set exactly if `needed` votes are reached.
  const goal = 2 ** planesFor(votes.length - needed);
  const sums = addPlanes(
    [constantPlanes(goal - needed, casting.shape), ...votes.map((vote) => [vote])],
    goal + votes.length - needed,
  );
  return sums.at(-1)!;
};

/** Returns the number of u32 words of signs for which each rank counts the votes, for n signs in total. */
const shardWords = (count: number, numRanks: number): number => Math.ceil(Math.ceil(count / 32) / numRanks);

/**
 * Majority vote of gradient signs: `mean_j = sign(Σ_r sign(g_r,j))`. Every entry of the mean is +1 or −1, whatever the
 * gradient's size. So with SGD, each parameter changes by the learning rate in each step.
 *
 * Each rank draws a random sign for 0, and the rank that counts votes draws a random result for a tie. So the exchange
 * needs a key. A fixed +1 would add a bias: with pure noise on four ranks, 3 in 8 votes tie.
 *
 * Each rank counts the votes for 1/P of all entries. An all-to-all sends signs to the counting ranks, and an all-gather
 * distributes the outcome, both with one bit per entry. Votes are counted by bitwise addition, 32 entries at a time.
 *
 * `sent` equals the mean, because a vote has no magnitude, and so that `sent` sums to P times the mean over all ranks.
 * Error feedback is therefore not meaningful for this aggregator; use `scaledSignCompressor` with error feedback
 * instead.
 *
 * A NaN or an infinity on any rank makes all entries of the mean NaN: ranks send a flag word after the signs.
 *
 * Cost: `2 · 4(P−1) · (⌈⌈n/32⌉/P⌉ + 1)` bytes sent, about `2(P−1)/P · n/8`; an all-gather of the signs would send
 * `(P−1) · n/8`.
 * @example
 * ```ts
 * const compressor = majorityVoteAggregator();
 * const send = (w: Tensor, key: Tensor) =>
 *   exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor, key })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]), randomKey(1));
 * console.log(sent.toNumbers()); // [1, -1, 1, 1]
 * ```
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
    // The maximum of an empty gradient is −∞, so the lower bound is 0. The maximum is finite if and only if all entries
    // are finite.
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
