import { spdKfacStages } from "@skein/published-measurements";
import { calibratedOn } from "./calibrate-kfac.ts";
import { convolutionLayers, inputRows, type NetworkName } from "./convolution-layers.ts";
import { forwardMultiplyAdds } from "./kfac-cluster.ts";

/** Seconds of a step without K-FAC: forward and backward pass, and exposed gradient exchange. */
export interface PlainStep {
  readonly passes: number;
  readonly gradientCommunication: number;
}

/** Solves two equations a · x₀ + b · x₁ = y for x₀ and x₁; each row is [a, b]. */
const solvePair = (
  [first, second]: readonly [readonly [number, number], readonly [number, number]],
  [y0, y1]: readonly [number, number],
): readonly [number, number] => {
  const determinant = first[0] * second[1] - first[1] * second[0];
  return [(y0 * second[1] - y1 * first[1]) / determinant, (first[0] * y1 - second[0] * y0) / determinant];
};

/**
 * Returns the features of the linear estimate: numbers of layers and multiply-adds for the passes, numbers of tensors
 * and bytes for the exchange. Each convolution has a weight and a norm with two vectors; the last layer has a weight
 * and a bias.
 */
const plainFeatures = (network: NetworkName, batchPerGpu: number) => {
  const layers = convolutionLayers[network];
  const tensors = layers.reduce((sum, { hasBias }) => sum + (hasBias ? 2 : 3), 0);
  const bytes = layers.reduce((sum, layer) => sum + 4 * inputRows(layer) * layer.outputs, 0);
  return {
    passes: [layers.length, batchPerGpu * forwardMultiplyAdds(layers)] as const,
    gradientCommunication: [tensors, bytes] as const,
  };
};

/**
 * Estimates the step time without K-FAC for a network without published times. Forward and backward pass take a ·
 * layers + b · multiply-adds, and the exchange takes a · tensors + b · bytes. The coefficients are solved from the two
 * networks of the calibration. The estimate for the third published network has a large error.
 */
export const guessPlainStep = (network: NetworkName, batchPerGpu: number): PlainStep => {
  const own = plainFeatures(network, batchPerGpu);
  const guess = (key: keyof PlainStep): number => {
    const [first, second] = calibratedOn.map((known) => ({
      features: plainFeatures(known, spdKfacStages[known].batchPerGpu)[key],
      seconds: spdKfacStages[known].forms.d[key],
    }));
    const [a, b] = solvePair([first!.features, second!.features], [first!.seconds, second!.seconds]);
    return a * own[key][0] + b * own[key][1];
  };
  return { passes: guess("passes"), gradientCommunication: guess("gradientCommunication") };
};
