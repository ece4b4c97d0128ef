import { ArgumentError, constant, divide, subtract, type Tensor } from "@skein/tensor-core";
import { pixels } from "./layers.ts";
import type { Model } from "./model.ts";

/** Means and standard deviations of image channels. */
export interface ChannelStatistics {
  /** Mean of each channel, or a single mean for all channels. For byte images on a scale from 0 to 1. */
  readonly mean: readonly number[];
  /**
   * Standard deviation of each channel, or a single value for all channels; above 0. For byte images on a scale from 0
   * to 1.
   */
  readonly std: readonly number[];
}

/**
 * Returns a model that normalizes its inputs, (x − mean) / std per channel. Bytes are first scaled to 0…1, as in image
 * models; floats are not scaled. The normalization is part of the model, so it also applies in evaluation and export.
 *
 * @param model Model with inputs [B, …, channels]; must accept f32.
 * @throws ArgumentError if the inputs have a different number of channels, or a standard deviation is not above 0.
 * Source: `torchvision.transforms.Normalize`.
 * @example normalised(resnet18(), { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] })
 */
export const normalised = <M extends Model>(model: M, { mean, std }: ChannelStatistics): M => {
  const bad = std.find((deviation) => !(deviation > 0));
  if (bad !== undefined)
    throw new ArgumentError(`a standard deviation of ${bad} is not usable as a divisor; give numbers above 0`);
  const normalise = (inputs: Tensor): Tensor => {
    const channels = inputs.shape.at(-1);
    const [means, deviations] = (
      [
        ["mean", mean],
        ["std", std],
      ] as const
    ).map(([name, values]) => {
      if (values.length !== 1 && values.length !== channels)
        throw new ArgumentError(
          `${name} has ${values.length} numbers, but the inputs, [${inputs.shape.join(", ")}], have ${channels} channels; give one number per channel, or one for all`,
        );
      return constant(values, "f32");
    });
    return divide(subtract(pixels(inputs), means!), deviations!);
  };
  return {
    ...model,
    apply: (params, state, inputs, context) => model.apply(params, state, normalise(inputs), context),
    loss: (params, state, batch, context) =>
      model.loss(params, state, { ...batch, inputs: normalise(batch.inputs) }, context),
    evaluate: (params, state, batch) => model.evaluate(params, state, { ...batch, inputs: normalise(batch.inputs) }),
  };
};
