import { ArgumentError, constant, divide, subtract, type Tensor } from "@skein/tensor-core";
import { pixels } from "./layers.ts";
import type { Model } from "./model.ts";

/** Means and standard deviations of the channels of images. */
export interface ChannelStatistics {
  /** Of each channel, or one for all; of bytes on a scale from 0 to 1. */
  readonly mean: readonly number[];
  /** Above 0; likewise. */
  readonly std: readonly number[];
}

/**
 * A model that sees its inputs normalised, (x − mean) / std channel by channel: bytes brought to 0 to 1 before, as
 * models of images do, floats as they are. It is part of the model, so whoever evaluates or exports it need not know.
 *
 * @param model of inputs [B, …, channels], which takes f32 as well.
 * @throws ArgumentError when a call's inputs have another number of channels, or for a deviation that is not above 0.
 * Source: `torchvision.transforms.Normalize`.
 * @example normalised(resnet18(), { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] })
 */
export const normalised = <M extends Model>(model: M, { mean, std }: ChannelStatistics): M => {
  const bad = std.find((deviation) => !(deviation > 0));
  if (bad !== undefined)
    throw new ArgumentError(`a standard deviation of ${bad} cannot be divided by; give numbers above 0`);
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
          `${name} has ${values.length} numbers, but the inputs, [${inputs.shape.join(", ")}], have ${channels} channels; give one for each, or one for all`,
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
