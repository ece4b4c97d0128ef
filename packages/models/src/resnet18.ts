import type { Model } from "./model.ts";
import type { RecomputeOptions } from "./recompute.ts";
import { resnet, type ResNetParams, type ResNetState } from "./resnet.ts";

export interface ResNet18Options extends RecomputeOptions {
  /** Number of classes. Default: 10. */
  readonly numClasses?: number;
  /** Number of channels of the images. Default: 3. */
  readonly inputChannels?: number;
  /** Numbers of channels of the four stages. Default: [64, 128, 256, 512]. */
  readonly channels?: readonly [number, number, number, number];
}

/** Parameters of a ResNet-18. */
export type ResNet18Params = ResNetParams;

/** Running statistics of a ResNet-18's batch norms. */
export type ResNet18State = ResNetState;

/**
 * ResNet-18 for small images: the first layer is a 3×3 convolution instead of a 7×7 convolution with pooling. Inputs
 * [B, H, W, C], f32 or bytes, e.g. [128, 32, 32, 3].
 *
 * Parameters with the defaults: 11,173,962. Forward flops per 32×32 image: 1.11 billion.
 * Source: He et al. 2016, arXiv 1512.03385, §4.2; basic blocks with projection shortcuts.
 */
export const resnet18 = ({
  numClasses = 10,
  inputChannels = 3,
  channels = [64, 128, 256, 512],
  recompute = "none",
}: ResNet18Options = {}): Model<ResNet18Params, ResNet18State> =>
  resnet({ numClasses, inputChannels, stem: "small", channels, recompute });
