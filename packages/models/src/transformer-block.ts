// Shapes: B batch, T positions, D width.
import { foldIn, scope, type Tensor } from "@skein/tensor-core";
import { dropWhileTraining } from "./layers.ts";
import type { RunContext } from "./model.ts";
import type { Norm } from "./normalisation.ts";
import type { Past } from "./past.ts";
import { type Connection, type Outputs, preNorm } from "./residual-connection.ts";

/** Options for one call of a block. */
export interface BlockContext extends RunContext {
  /** Number of keys in each row of the batch, i32 [B]. Absent: all positions are keys. */
  readonly keyLengths?: Tensor | undefined;
  /** State of the model before the call. Absent: no block has a state. */
  readonly state?: unknown;
}

/** A branch of a block, such as attention. Its parameters are fields of the block's parameters. */
export interface Branch<Params, Further = never> {
  /** Scope name of the branch. */
  readonly name: string;
  /**
   * Dimension along which ranks may shard each parameter: columns (1) of matrices that multiply the branch input, rows
   * (0) of the matrix that computes the branch output. Absent: the parameters cannot be sharded.
   */
  readonly shardDims?: Readonly<Record<string, 0 | 1>>;
  /** Initializes the parameters. @param key Key of the block. */
  init(key: Tensor): Params;
  apply(params: Params, x_BTD: Tensor, context: BlockContext): Outputs<Further>;
}

/** Parameters of a block: parameters of two norms, and the fields of both branches. */
export interface BlockParams<NormParams = unknown> {
  readonly attentionNorm: NormParams;
  readonly feedForwardNorm: NormParams;
}

/** Branches of a block, in the order of execution. */
export interface Block<Params, Further = never> {
  readonly attention: Branch<Partial<Params>>;
  readonly feedForward: Branch<Partial<Params>, Further>;
}

/** Blocks of a transformer, and the parts that all blocks share. */
export interface BlockStack<Params extends BlockParams, Further = never> {
  readonly blocks: readonly Block<Params, Further>[];
  readonly norm: Norm<Params["attentionNorm"]>;
  readonly connect: Connection;
  /** Dropout rate of each branch output during training. */
  readonly dropoutRate: number;
  readonly drop: typeof dropWhileTraining;
  /** Runs a block. `recomputed` replaces this function. */
  run<Result>(block: () => Result, past: Past | undefined): Result;
}

export const stackDefaults: Omit<BlockStack<never>, "blocks" | "norm"> = {
  connect: preNorm,
  dropoutRate: 0,
  drop: dropWhileTraining,
  run: (block) => block(),
};

/** Initializes the parameters of all blocks. Block i uses the key folded with `firstKey + i`. */
export const initBlocks = <Params extends BlockParams, Further>(
  { blocks, norm }: BlockStack<Params, Further>,
  key: Tensor,
  firstKey: number,
): readonly Params[] =>
  blocks.map(({ attention, feedForward }, layer) => {
    const own = foldIn(key, firstKey + layer);
    const attentionParams = { attentionNorm: norm.init(), ...attention.init(own) };
    return { ...attentionParams, feedForwardNorm: norm.init(), ...feedForward.init(own) } as BlockParams as Params;
  });

/** Applies all blocks: [B, T, D] to [B, T, D]. Also returns the additional results of all branches. */
export const applyBlocks = <Params extends BlockParams, Further>(
  { blocks, norm, connect, dropoutRate, drop, run }: BlockStack<Params, Further>,
  params: readonly Params[],
  x_BTD: Tensor,
  context: BlockContext,
): Outputs<Further> => {
  const applyBlock = ({ attention, feedForward }: Block<Params, Further>, layer: number, x: Tensor) => {
    const block = params[layer]!;
    const connected = <Own>(input: Tensor, branch: Branch<Partial<Params>, Own>, normParams: unknown, use: number) =>
      connect<Own>(input, {
        name: branch.name,
        norm: (own) => norm.apply(normParams, own),
        branch: (own) => branch.apply(block, own, context),
        drop: (y) => drop(y, dropoutRate, context, use),
      });
    const [attended] = connected(x, attention, block.attentionNorm, 2 * layer + 1);
    return connected(attended, feedForward, block.feedForwardNorm, 2 * layer + 2);
  };
  return blocks.reduce<Outputs<Further>>(
    ([x, ...earlier], block, layer) => {
      const [y, ...own] = scope(`block-${layer}`, () => run(() => applyBlock(block, layer, x), context.past));
      return [y, ...earlier, ...own];
    },
    [x_BTD],
  );
};
