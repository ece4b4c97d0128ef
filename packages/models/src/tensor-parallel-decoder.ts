// Shapes: B batch, T positions, D width, P ranks of the axis, K experts per token.
import { ArgumentError, axisIndex, foldIn, ownShard, reshape, scope, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { DecoderParams, DecoderParts } from "./decoder.ts";
import type { FeedForwardLayer, GptExperts } from "./gpt-options.ts";
import type { LabelledBatch, Model } from "./model.ts";
import {
  dropOwnPositions,
  enterColumnParallel,
  gatherPositions,
  leaveRowParallel,
  ownPositions,
  type TensorParallel,
} from "./tensor-parallel.ts";
import type { Branch } from "./transformer-block.ts";

/** Tensor-parallel options of a model, and the model sizes that are divided among the ranks. */
export interface TensorRanks extends Required<TensorParallel> {
  /** Name of the model in error messages. */
  readonly model: string;
  /** Sizes that must be divisible by the number of ranks, by name. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Positions that expert layers receive: the rank's own positions, or all positions. */
  readonly expertPositions: "own" | "all";
}

/** Throws ArgumentError while tracing if a size is not divisible by the number of ranks. */
const requireDivisible = ({ model, axis }: TensorRanks, sizes: Readonly<Record<string, number>>): void => {
  const numRanks = axisSize(axis);
  for (const [name, size] of Object.entries(sizes))
    if (size % numRanks !== 0)
      throw new ArgumentError(
        `${model}: ${size} ${name} are not divisible by ${numRanks} ranks of axis "${axis}"; use a multiple of ${numRanks}, or fewer ranks`,
      );
};

/**
 * Shards the matrices of a branch. Each rank initializes the full matrices before taking its shard, so that initial
 * values do not depend on the number of ranks.
 */
const shardBranch = <Params, Further>(branch: Branch<Params, Further>, ranks: TensorRanks): Branch<Params, Further> => {
  const { shardDims, init, apply } = branch;
  if (shardDims === undefined) return branch;
  return {
    ...branch,
    init: (key) => {
      const whole = Object.entries(init(key) as Readonly<Record<string, Tensor>>);
      const own = whole.map(([name, matrix]) => [name, ownShard(matrix, { axis: ranks.axis, dim: shardDims[name]! })]);
      return Object.fromEntries(own) as Params;
    },
    apply: (params, own, context) => {
      const [y, ...further] = apply(params, enterColumnParallel(own, ranks), context);
      return [leaveRowParallel(y, ranks), ...further];
    },
  };
};

/** Shards the matrices of a decoder and, with `sequence`, the positions of the hidden states between the branches. */
const shardParts = <Params extends DecoderParams, State, Further>(
  parts: DecoderParts<Params, State, Further>,
  ranks: TensorRanks,
): DecoderParts<Params, State, Further> => {
  const { axis } = ranks;
  const blocks = parts.blocks.map(({ attention, feedForward }) => ({
    attention: shardBranch(attention, ranks),
    feedForward: shardBranch(feedForward, ranks),
  }));
  if (!ranks.sequence) return { ...parts, blocks };
  return {
    ...parts,
    blocks,
    requireTokens: (tokens) => {
      parts.requireTokens(tokens);
      requireDivisible(ranks, { positions: tokens.shape[1]! });
    },
    ownPositions: (x, dim) => ownShard(x, { axis, dim }),
    drop: (x, rate, context, use = 0) => dropOwnPositions(x, rate, context, { use, axis }),
  };
};

/**
 * Creates a decoder whose matrices are sharded over the ranks of an axis, as described for `gpt`.
 *
 * @param make Creates the model from sharded parts.
 * @throws ArgumentError while tracing, if the number of ranks does not divide `sizes` and the number of positions.
 */
export const tensorParallelDecoder = <Params extends DecoderParams, State, Further>(
  parts: DecoderParts<Params, State, Further>,
  ranks: TensorRanks,
  make: (parts: DecoderParts<Params, State, Further>) => Model<Params, State>,
): Model<Params, State> => {
  const sharded = shardParts(parts, ranks);
  const model = make(sharded);
  const ofOwn = ranks.sequence ? model : make({ ...sharded, headPositions: (x_BTD) => ownPositions(x_BTD, ranks) });
  const own = (batch: LabelledBatch): LabelledBatch => {
    requireDivisible(ranks, { positions: batch.labels.shape[1]! });
    return { ...batch, labels: ownPositions(batch.labels, ranks) };
  };
  const { experts } = model;
  return {
    ...model,
    init: (key) => {
      requireDivisible(ranks, ranks.sizes);
      return model.init(key);
    },
    apply: (...call) => {
      const [logits_BTV, next] = model.apply(...call);
      return [ranks.sequence ? scope("head", () => gatherPositions(logits_BTV, ranks)) : logits_BTV, next];
    },
    loss: (params, state, batch, context) => ofOwn.loss(params, state, own(batch), context),
    evaluate: (params, state, batch) => ofOwn.evaluate(params, state, own(batch)),
    sharding: (path) => {
      const [, layer, name] = /^blocks\.(\d+)\.(.*)$/.exec(path) ?? [];
      const { attention, feedForward } = sharded.blocks[Number(layer)] ?? {};
      const dim = { ...attention?.shardDims, ...feedForward?.shardDims }[name!];
      return dim === undefined ? (model.sharding?.(path) ?? []) : [{ axis: ranks.axis, dim }];
    },
    ...(experts !== undefined &&
      ranks.expertPositions === "all" && {
        experts: {
          ...experts,
          choices: (params, state, inputs, context) =>
            experts.choices(params, state, inputs, context).map((choices_TK) => {
              const own_BTK = ownPositions(reshape(choices_TK, [...inputs.shape, -1]), ranks);
              return reshape(own_BTK, [-1, choices_TK.shape[1]!]);
            }),
        },
      }),
  };
};

/**
 * Returns a function that applies an expert layer to the hidden states of tensor-parallel ranks: to the rank's own
 * positions, as if the axis were a data-parallel axis, or to all positions.
 */
export const applyOnRanks = ({ layer }: GptExperts, ranks: TensorRanks): FeedForwardLayer["apply"] => {
  const [takesAll, hasAll] = [ranks.expertPositions === "all", !ranks.sequence];
  const [enter, leave] = takesAll ? [gatherPositions, ownPositions] : [ownPositions, gatherPositions];
  return (params, state, x, context) => {
    if (hasAll && !takesAll) requireDivisible(ranks, { positions: x.shape[1]! });
    // Ranks with different tokens must use different random numbers.
    const { key } = context;
    const isOwnKey = key !== undefined && !takesAll && axisSize(ranks.axis) > 1;
    const [y, next, report] = layer.apply(params, state, hasAll === takesAll ? x : enter(x, ranks), {
      ...context,
      ...(isOwnKey && { key: foldIn(key, axisIndex(ranks.axis)) }),
    });
    return [hasAll === takesAll ? y : leave(y, ranks), next, report];
  };
};
