import { add, conv2d, foldIn, globalAvgPool, relu, scope, type Tensor } from "@skein/tensor-core";
import { applyBatchNorm, type BatchNormParams, type BatchNormState, initBatchNorm } from "./batch-normalisation.ts";
import { headNormal, heNormal } from "./initialisers.ts";
import { type Affine, dense, initDense, pixels } from "./layers.ts";
import { asBlock, type Recompute } from "./recompute.ts";
import { labelledModel, type Model } from "./model.ts";

export interface ResNet18Options {
  /** Default: 10. */
  readonly numClasses?: number;
  /** Default: 3. */
  readonly inputChannels?: number;
  /** Channels of the four stages. Default: [64, 128, 256, 512]. */
  readonly channels?: readonly [number, number, number, number];
  /**
   * `blocks` keeps what enters each block for the backward pass and computes the rest of it again: see `checkpoint`.
   * Default: none.
   */
  readonly recompute?: Recompute;
}

interface NormalisedConvolution<Norm> {
  readonly norm: Norm;
}

export interface ConvolutionParams extends NormalisedConvolution<BatchNormParams> {
  /** [height, width, in, out] */
  readonly weight: Tensor;
}

type ConvolutionState = NormalisedConvolution<BatchNormState>;

/** Two convolutions, and a 1×1 one beside them where size or channels change. */
interface Block<Convolution> {
  readonly conv1: Convolution;
  readonly conv2: Convolution;
  readonly shortcut?: Convolution;
}

interface Network<Convolution> {
  readonly stem: Convolution;
  /** Four stages of two blocks. */
  readonly stages: readonly (readonly Block<Convolution>[])[];
}

export interface ResNet18Params extends Network<ConvolutionParams> {
  readonly head: Affine;
}

export type ResNet18State = Network<ConvolutionState>;

type Initialised = { readonly params: ConvolutionParams; readonly state: ConvolutionState };

/** Build both trees, params and state, from one description. */
const initConvolution = (key: Tensor, size: number, numIn: number, numOut: number): Initialised => {
  const norm = initBatchNorm(numOut);
  return {
    params: { weight: heNormal(key, [size, size, numIn, numOut]), norm: norm.params },
    state: { norm: norm.state },
  };
};

const initBlock = (key: Tensor, numIn: number, numOut: number, stride: number): Block<Initialised> => ({
  conv1: initConvolution(foldIn(key, 0), 3, numIn, numOut),
  conv2: initConvolution(foldIn(key, 1), 3, numOut, numOut),
  ...(numIn === numOut && stride === 1 ? {} : { shortcut: initConvolution(foldIn(key, 2), 1, numIn, numOut) }),
});

const pick = <T>({ stem, stages }: Network<Initialised>, of: (convolution: Initialised) => T): Network<T> => ({
  stem: of(stem),
  stages: stages.map((blocks) =>
    blocks.map(({ conv1, conv2, shortcut }) => ({
      conv1: of(conv1),
      conv2: of(conv2),
      ...(shortcut && { shortcut: of(shortcut) }),
    })),
  ),
});

const convolution = (
  params: ConvolutionParams,
  state: ConvolutionState,
  x: Tensor,
  train: boolean,
  stride = 1,
): readonly [Tensor, ConvolutionState] => {
  // The padding of stride 2 as in PyTorch, one pixel on each side; "same" would put it on the far side only.
  const side = (params.weight.shape[0]! - 1) / 2;
  const padding = [
    [side, side],
    [side, side],
  ] as const;
  const [y, norm] = applyBatchNorm(params.norm, state.norm, conv2d(x, params.weight, { stride, padding }), train);
  return [y, { norm }];
};

const applyBlock = (
  params: Block<ConvolutionParams>,
  state: Block<ConvolutionState>,
  x: Tensor,
  train: boolean,
  stride: number,
): readonly [Tensor, Block<ConvolutionState>] => {
  const [y, conv1] = scope("conv-1", () => convolution(params.conv1, state.conv1, x, train, stride));
  const [z, conv2] = scope("conv-2", () => convolution(params.conv2, state.conv2, relu(y), train));
  if (params.shortcut === undefined || state.shortcut === undefined) return [relu(add(z, x)), { conv1, conv2 }];
  const { shortcut } = params;
  const own = state.shortcut;
  const [beside, next] = scope("shortcut", () => convolution(shortcut, own, x, train, stride));
  return [relu(add(z, beside)), { conv1, conv2, shortcut: next }];
};

/**
 * ResNet-18 for small images: a 3×3 stem instead of 7×7 and pooling. Inputs [B, H, W, C], f32 or bytes, e.g. [128, 32,
 * 32, 3].
 *
 * `state` holds the running statistics of batch normalisation. Each rank of a data-parallel run moves its own; average
 * them over the ranks before evaluating.
 *
 * Parameters with the defaults: 11,173,962. Forward flops per 32×32 image: 1.11 billion.
 * Source: He et al. 2016, arXiv 1512.03385, §4.2; basic blocks with projection shortcuts.
 */
export const resnet18 = (options: ResNet18Options = {}): Model<ResNet18Params, ResNet18State> => {
  const { numClasses = 10, inputChannels = 3, channels = [64, 128, 256, 512], recompute = "none" } = options;
  const strideOf = (stage: number, block: number): number => (stage > 0 && block === 0 ? 2 : 1);
  return labelledModel({
    init: (key) => {
      const network: Network<Initialised> = {
        stem: initConvolution(foldIn(key, 0), 3, inputChannels, channels[0]),
        stages: channels.map((width, stage) => {
          const stageKey = foldIn(key, stage + 1);
          return [0, 1].map((block) =>
            initBlock(
              foldIn(stageKey, block),
              block === 0 ? channels[Math.max(stage - 1, 0)]! : width,
              width,
              strideOf(stage, block),
            ),
          );
        }),
      };
      const params = {
        ...pick(network, (own) => own.params),
        head: initDense(foldIn(key, channels.length + 1), [channels[3], numClasses], { initialise: headNormal }),
      };
      return { params, state: pick(network, (own) => own.state) };
    },
    apply: (params, state, images, { train }) => {
      const [first, stem] = scope("stem", () => convolution(params.stem, state.stem, pixels(images), train));
      let x = relu(first);
      const stages = params.stages.map((blocks, stage) =>
        blocks.map((block, i) =>
          scope(`stage-${stage}/block-${i}`, () => {
            const [y, next] = asBlock(recompute, () =>
              applyBlock(block, state.stages[stage]![i]!, x, train, strideOf(stage, i)),
            );
            x = y;
            return next;
          }),
        ),
      );
      return [scope("head", () => dense(params.head, globalAvgPool(x))), { stem, stages }];
    },
  });
};
