import {
  add,
  ArgumentError,
  conv2d,
  foldIn,
  globalAvgPool,
  maxPool2d,
  relu,
  scope,
  type Tensor,
} from "@skein/tensor-core";
import { applyBatchNorm, type BatchNormParams, type BatchNormState, initBatchNorm } from "./batch-normalisation.ts";
import { headNormal, heNormal } from "./initialisers.ts";
import { type Affine, dense, initDense, pixels } from "./layers.ts";
import { runBlock, type RecomputeOptions } from "./recompute.ts";
import { labelledModel, type Model } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";

/** Architecture of a ResNet. */
export interface ResNetOptions extends RecomputeOptions {
  readonly numClasses: number;
  /** Number of channels of the images. Default: 3. */
  readonly inputChannels?: number;
  /**
   * First layer of the network. `small`: 3×3 convolution. `large`: 7×7 convolution with stride 2 and 3×3 max pooling
   * with stride 2, which together reduce the number of pixels to a sixteenth. Default: large.
   */
  readonly stem?: "small" | "large";
  /**
   * Number of output channels of the stem. Default: the number of channels of the first stage, or a quarter of that
   * number with bottleneck blocks.
   */
  readonly stemChannels?: number;
  /**
   * Type of block. `basic`: two 3×3 convolutions. `bottleneck`: a 3×3 convolution on a quarter of the channels, between
   * two 1×1 convolutions (ResNet-50 and deeper). Default: basic.
   */
  readonly block?: "basic" | "bottleneck";
  /** Number of channels of each stage. */
  readonly channels: readonly number[];
  /** Number of blocks in each stage. Default: 2 in each stage. */
  readonly depths?: readonly number[];
  /** Whether the first stage also halves the number of rows and columns, like all later stages. Default: false. */
  readonly strideInFirstStage?: boolean;
}

interface NormalisedConvolution<Norm> {
  readonly norm: Norm;
}

export interface ConvolutionParams extends NormalisedConvolution<BatchNormParams> {
  /** Kernel of the convolution, [height, width, in, out]. */
  readonly weight: Tensor;
}

type ConvolutionState = NormalisedConvolution<BatchNormState>;

/**
 * A block: two convolutions, or three in a bottleneck, and a 1×1 shortcut if the size or the number of channels
 * changes.
 */
interface Block<Convolution> {
  readonly conv1: Convolution;
  readonly conv2: Convolution;
  readonly conv3?: Convolution;
  readonly shortcut?: Convolution;
}

interface Network<Convolution> {
  readonly stem: Convolution;
  readonly stages: readonly (readonly Block<Convolution>[])[];
}

/** Parameters of a ResNet: stem, blocks by stage, and the final dense layer. */
export interface ResNetParams extends Network<ConvolutionParams> {
  readonly head: Affine;
}

/** Running statistics of a ResNet's batch norms, in the same tree structure as its convolutions. */
export type ResNetState = Network<ConvolutionState>;

type Initialised = { readonly params: ConvolutionParams; readonly state: ConvolutionState };

/** Draws the parameters of a convolution with its batch norm, and the initial state of the norm. */
const initConvolution = (key: Tensor, size: number, numIn: number, numOut: number): Initialised => {
  const norm = initBatchNorm(numOut);
  return {
    params: { weight: heNormal(key, [size, size, numIn, numOut]), norm: norm.params },
    state: { norm: norm.state },
  };
};

/** Ratio of a bottleneck block's output channels to the channels of its 3×3 convolution. */
const reduction = 4;

type BlockKind = NonNullable<ResNetOptions["block"]>;

const initBlock = (key: Tensor, kind: BlockKind, numIn: number, numOut: number, stride: number): Block<Initialised> => {
  const numInner = kind === "basic" ? numOut : numOut / reduction;
  return {
    conv1: initConvolution(foldIn(key, 0), kind === "basic" ? 3 : 1, numIn, numInner),
    conv2: initConvolution(foldIn(key, 1), 3, numInner, numInner),
    ...(kind === "bottleneck" && { conv3: initConvolution(foldIn(key, 3), 1, numInner, numOut) }),
    ...(numIn === numOut && stride === 1 ? {} : { shortcut: initConvolution(foldIn(key, 2), 1, numIn, numOut) }),
  };
};

const pick = <T>({ stem, stages }: Network<Initialised>, of: (convolution: Initialised) => T): Network<T> => ({
  stem: of(stem),
  stages: stages.map((blocks) =>
    blocks.map(({ conv1, conv2, conv3, shortcut }) => ({
      conv1: of(conv1),
      conv2: of(conv2),
      ...(conv3 && { conv3: of(conv3) }),
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
  // Padding for stride 2 as in PyTorch, one pixel on each side; "same" would pad only at the end of rows and columns.
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
  type Name = "conv1" | "conv2" | "conv3" | "shortcut";
  const apply = (name: Name, input: Tensor, ownStride: number, before = (own: Tensor) => own): [Tensor, object] => {
    const [own, ownState] = [params[name], state[name]];
    if (own === undefined || ownState === undefined) return [input, {}];
    const [y, next] = scope(name.replace("conv", "conv-"), () =>
      convolution(own, ownState, before(input), train, ownStride),
    );
    return [y, { [name]: next }];
  };
  // In a bottleneck block, the 3×3 convolution has the stride, as in all later implementations. In the paper, the first
  // convolution has the stride.
  const isBasic = params.conv3 === undefined;
  const [y, first] = apply("conv1", x, isBasic ? stride : 1);
  const [z, second] = apply("conv2", y, isBasic ? 1 : stride, relu);
  const [w, third] = apply("conv3", z, 1, relu);
  const [skip, shortcut] = apply("shortcut", x, stride);
  return [relu(add(w, skip)), { ...first, ...second, ...third, ...shortcut } as Block<ConvolutionState>];
};

/** Applies the max pooling of the large stem. */
const pool = (x: Tensor): Tensor =>
  maxPool2d(x, {
    window: 3,
    stride: 2,
    padding: [
      [1, 1],
      [1, 1],
    ],
  });

/**
 * Residual networks: a stem, stages of blocks that halve rows and columns and increase the channels, the mean over all
 * pixels, and a dense output layer. Inputs [B, H, W, C], f32 or bytes, e.g. [64, 224, 224, 3].
 *
 * `state` contains the running statistics of batch normalization. Each rank of a data-parallel run updates its own
 * statistics; average them over the ranks before evaluation.
 *
 * Parameters for 1000 classes: 11,689,512 for ResNet-18, 25,557,032 for ResNet-50. Forward flops per 224×224 image: 3.6
 * billion for ResNet-18, 8.2 billion for ResNet-50.
 *
 * @throws ArgumentError if sizes are not positive integers, `depths` and `channels` have different lengths, or channels
 * are not a multiple of 4 with bottlenecks. Source: He et al. 2016, arXiv 1512.03385.
 * @example const resnet50 = resnet({ numClasses: 1000, block: "bottleneck", channels: [256, 512, 1024, 2048], depths:
 * [3, 4, 6, 3] });
 */
export const resnet = (options: ResNetOptions): Model<ResNetParams, ResNetState> => {
  const {
    numClasses,
    inputChannels = 3,
    stem: stemKind = "large",
    block: kind = "basic",
    channels,
    stemChannels = kind === "basic" ? channels[0]! : channels[0]! / reduction,
    depths = channels.map(() => 2),
    strideInFirstStage = false,
    recompute = "none",
  } = options;
  if (channels.length === 0 || depths.length !== channels.length)
    throw new ArgumentError(
      `resnet: ${channels.length} stages have channels and ${depths.length} have depths; give one of each per stage, and at least one stage`,
    );
  requireSizes("resnet", { numClasses, inputChannels, stemChannels });
  for (const [stage, width] of channels.entries()) {
    requireSizes("resnet", { [`channels[${stage}]`]: width, [`depths[${stage}]`]: depths[stage]! });
    if (kind === "bottleneck" && width % reduction !== 0)
      throw new ArgumentError(
        `resnet: channels[${stage}] is ${width}, but a bottleneck uses a quarter of the channels; use a multiple of ${reduction}`,
      );
  }
  const strideOf = (stage: number, block: number): number => (block === 0 && (stage > 0 || strideInFirstStage) ? 2 : 1);
  return labelledModel({
    init: (key) => {
      const network: Network<Initialised> = {
        stem: initConvolution(foldIn(key, 0), stemKind === "small" ? 3 : 7, inputChannels, stemChannels),
        stages: channels.map((width, stage) => {
          const stageKey = foldIn(key, stage + 1);
          const before = stage === 0 ? stemChannels : channels[stage - 1]!;
          return Array.from({ length: depths[stage]! }, (_, block) =>
            initBlock(foldIn(stageKey, block), kind, block === 0 ? before : width, width, strideOf(stage, block)),
          );
        }),
      };
      const params = {
        ...pick(network, (own) => own.params),
        head: initDense(foldIn(key, channels.length + 1), [channels.at(-1)!, numClasses], { initialise: headNormal }),
      };
      return { params, state: pick(network, (own) => own.state) };
    },
    apply: (params, state, images, { train }) => {
      const [first, stem] = scope("stem", () =>
        convolution(params.stem, state.stem, pixels(images), train, stemKind === "small" ? 1 : 2),
      );
      let x = stemKind === "small" ? relu(first) : scope("stem", () => pool(relu(first)));
      const stages = params.stages.map((blocks, stage) =>
        blocks.map((block, i) =>
          scope(`stage-${stage}/block-${i}`, () => {
            const [y, next] = runBlock(recompute, () =>
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
