import { ArgumentError } from "@skein/tensor-core";
import { attentionBranch } from "./attention-layer.ts";
import { bareMatrices } from "./bare-matrices.ts";
import { decoder, decoderDefaults, type DecoderParts } from "./decoder.ts";
import { expertDecoder, type ExpertsApplied } from "./expert-decoder.ts";
import { feedForwardBranch, gatedFeedForwardBranch } from "./feed-forward.ts";
import type { GptOptions, GptParams, GptState } from "./gpt-options.ts";
import type { Model } from "./model.ts";
import { layerNormPart, rmsNormPart } from "./normalisation.ts";
import { recomputed } from "./recompute.ts";
import { requireSizes } from "./require-sizes.ts";
import { scopedPreNorm } from "./residual-connection.ts";
import { applyOnRanks, tensorParallelDecoder } from "./tensor-parallel-decoder.ts";
import { requireDivisor, requireTokens, residualDeviation } from "./transformer-sizes.ts";

const attentionNames = { query: "query_DD", key: "key_DD", value: "value_DD", output: "output_DD" } as const;
const feedForwardNames = { up: "up_DF", down: "down_FD" } as const;

/**
 * A decoder-only transformer over bytes (or other small vocabularies): normalization before each branch, causal
 * attention, a feed-forward layer, no biases in the matrices. Inputs i32 or u8 [B, T]; labels [B, T] are the inputs
 * shifted by one position.
 *
 * Initial weights are normal with standard deviation 0.02. Matrices whose output is added to the residual stream have
 * 0.02 / √(2L) with L layers, as in GPT-2.
 *
 * Parameters: `VD + L·(4D² + 2DF + norms)`, with SwiGLU `3DF` instead of `2DF`; plus `TD` with learned positions and
 * `DV` with an untied head. Forward flops per token: about twice the matrix parameters, plus `4·T·D` per layer for
 * attention. With `experts` some blocks have an expert layer instead of the feed-forward layer; its auxiliary loss is
 * added to the training loss, and its metrics appear in `figures`.
 *
 * With `tensor` the ranks of an axis process the same samples; embedding, head and norms are replicated. `loss` and
 * `evaluate` cover a rank's own positions. The mean of the losses over ranks, and the sum of the metrics, equal the
 * results of a single rank. Initial parameters and dropout also equal those of a single rank. An expert layer receives
 * the rank's own positions, as if the axis were a data-parallel axis, or all positions (`positions`). Per block and
 * rank the forward pass sends `4(P−1)/P · 4BTD` bytes with P ranks, and the backward pass sends the same number of
 * bytes.
 *
 * @throws ArgumentError if sizes are not positive integers, the heads do not divide the width, no block would have
 * experts, or the number of tensor-parallel ranks does not divide the number of heads, F or T. Source: Radford et al.
 * 2019 (GPT-2); Su et al. 2021, arXiv 2104.09864 (rotary); Shazeer 2020, arXiv 2002.05202 (SwiGLU).
 */
export const gpt = (options: GptOptions): Model<GptParams, GptState> => {
  const {
    vocabulary = 256,
    contextLength,
    width,
    numLayers,
    numHeads,
    positions = "rotary",
    norm = "rms",
    activation = "gelu",
    tiedHead = true,
    dropoutRate = 0,
    recompute = "none",
    experts,
    tensor,
  } = options;
  const hidden = options.hidden ?? (activation === "gelu" ? 4 * width : 8 * Math.ceil(width / 3));
  requireSizes("gpt", { vocabulary, contextLength, width, numLayers, numHeads, hidden });
  requireDivisor("gpt", numHeads, width);
  if (experts !== undefined && (!Number.isInteger(experts.every) || experts.every < 1 || experts.every > numLayers))
    throw new ArgumentError(
      `gpt: experts.every is ${experts.every}, but there are ${numLayers} blocks; use an integer from 1 to ${numLayers}`,
    );
  const headWidth = width / numHeads;
  if (positions === "rotary" && headWidth % 2 !== 0)
    throw new ArgumentError(
      `gpt: rotary positions rotate pairs of values, but a head of ${width} / ${numHeads} = ${headWidth} values is odd; use an even head width or learned positions`,
    );

  const deviation = residualDeviation(numLayers);
  const rotary = positions === "rotary" && { rotary: {} };
  const attention = attentionBranch({ width, numHeads, deviation, causal: true, ...rotary });
  const sizes = { width, hidden, bias: false, deviation };
  const keys = { up: 4, gate: 5, down: 6 };
  const block = {
    attention: bareMatrices(attention, attentionNames, "output"),
    feedForward:
      activation === "gelu"
        ? bareMatrices(feedForwardBranch(sizes, undefined, keys), feedForwardNames, "down")
        : bareMatrices(gatedFeedForwardBranch(sizes, keys), { ...feedForwardNames, gate: "gate_DF" }, "down"),
  };
  const plain: DecoderParts<GptParams, GptState, ExpertsApplied> = {
    ...decoderDefaults,
    requireTokens: (tokens) => requireTokens("gpt", tokens, contextLength, "cut the sequences or raise contextLength"),
    embedding: {
      vocabulary,
      width,
      tiedHead,
      ...(positions === "learned" && { numPositions: contextLength }),
      keys: { positions: 1, head: 2 },
    },
    blocks: Array.from({ length: numLayers }, () => block),
    firstBlockKey: 3,
    norm: norm === "layer" ? layerNormPart(width) : rmsNormPart(width),
    connect: scopedPreNorm,
    dropoutRate,
  };

  // The order matters: expert layers replace branches that are already sharded, because experts are sharded in a
  // different way.
  const ranks = tensor && {
    ...tensor,
    sequence: tensor.sequence ?? true,
    model: "gpt",
    sizes: { heads: numHeads, "hidden values": hidden },
    expertPositions: experts?.positions ?? "own",
  };
  const make = (parts: typeof plain): Model<GptParams, GptState> =>
    experts ? expertDecoder(parts, experts, ranks && applyOnRanks(experts, ranks)) : decoder(parts);
  const parts = recomputed(plain, recompute);
  return ranks ? tensorParallelDecoder(parts, ranks, make) : make(parts);
};
