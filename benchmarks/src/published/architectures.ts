import type { GradientProfile } from "@skein/cost-model";
import { type ConvolutionLayer, convolutionLayers } from "./convolution-layers.ts";
import type { ModelName } from "./seven-methods.ts";

/**
 * Layer of a network: parameters whose gradients become ready together, and the multiply-adds of the forward pass per
 * sample.
 */
interface Layer {
  readonly path: string;
  /** Number of elements of each tensor, in the order of the forward pass. */
  readonly elements: readonly number[];
  readonly multiplyAdds: number;
}

const dense = (path: string, input: number, output: number, tokens: number): Layer => ({
  path,
  elements: [input * output, output],
  multiplyAdds: input * output * tokens,
});

const resNet = (layers: readonly ConvolutionLayer[]): readonly Layer[] =>
  layers.flatMap(({ path, kernel: [rows, columns], inputs, outputs, positions, hasBias }) => {
    const weights = rows * columns * inputs * outputs;
    return hasBias
      ? [{ path, elements: [weights, outputs], multiplyAdds: weights * positions }]
      : [
          { path, elements: [weights], multiplyAdds: weights * positions },
          // Batch normalization is bound by memory, with almost no multiply-adds.
          { path: `${path}-norm`, elements: [outputs, outputs], multiplyAdds: 0 },
        ];
  });

const words = 30_522;
/**
 * Number of tokens per sequence, as in the first phase of BERT's pre-training. Layer shares of compute time hardly
 * depend on this number, and nothing else uses it.
 */
const tokens = 128;

const layerNorm = (path: string, width: number): Layer => ({ path, elements: [width, width], multiplyAdds: 0 });

/**
 * Returns the layers of BERT with both heads of its pre-training, in the order of the forward pass. The word scores
 * share the weight of the embedding, whose gradient is complete only when the backward pass ends. The multiply-adds of
 * the word scores are therefore counted in the head, and their weight in the embedding.
 *
 * Source: Devlin et al. 2018, arXiv 1810.04805.
 */
const bert = (depth: number, width: number): readonly Layer[] => [
  { path: "embedding", elements: [words * width, 512 * width, 2 * width], multiplyAdds: 0 },
  layerNorm("embedding-norm", width),
  ...Array.from({ length: depth }, (_, layer) => [
    ...["query", "key", "value"].map((path) => dense(`${layer}.${path}`, width, width, tokens)),
    { path: `${layer}.scores`, elements: [], multiplyAdds: 2 * tokens ** 2 * width },
    dense(`${layer}.output`, width, width, tokens),
    layerNorm(`${layer}.attention-norm`, width),
    dense(`${layer}.widen`, width, 4 * width, tokens),
    dense(`${layer}.narrow`, 4 * width, width, tokens),
    layerNorm(`${layer}.norm`, width),
  ]).flat(),
  dense("pooler", width, width, 1),
  dense("transform", width, width, tokens),
  layerNorm("transform-norm", width),
  { path: "words", elements: [words], multiplyAdds: words * width * tokens },
  dense("next-sentence", width, 2, 1),
];

/** Models of the seven-method table, and one model of the table of simultaneous collectives. */
export type Architecture = ModelName | "ResNet-152";

const layersOf: Readonly<Record<Architecture, readonly Layer[]>> = {
  "ResNet-50": resNet(convolutionLayers["ResNet-50"]),
  "ResNet-152": resNet(convolutionLayers["ResNet-152"]),
  "BERT-Base": bert(12, 768),
  "BERT-Large": bert(24, 1024),
};

/** Returns the multiply-adds of a forward pass per sample. */
export const multiplyAddsOf = (model: Architecture): number =>
  layersOf[model].reduce((sum, { multiplyAdds }) => sum + multiplyAdds, 0);

/**
 * Builds the gradient profile of a model: its f32 gradients in the order in which they become ready. Backward and
 * forward time are divided among the layers in proportion to their multiply-adds.
 *
 * @param backwardSeconds Duration of the backward pass.
 * @param forwardSeconds Remaining time of an iteration on one GPU.
 */
export const profileOf = (model: Architecture, backwardSeconds: number, forwardSeconds: number): GradientProfile => {
  const total = multiplyAddsOf(model);
  // Multiply-adds of layers without a gradient (attention scores) add to the time of the next gradient.
  let waiting = 0;
  return {
    tensors: layersOf[model].toReversed().flatMap(({ path, elements, multiplyAdds }) => {
      waiting += multiplyAdds;
      return elements.map((count, i) => {
        const share = i === 0 ? waiting / total : 0;
        waiting = 0;
        return {
          path: `${path}.${i}`,
          bytes: 4 * count,
          backwardSeconds: share * backwardSeconds,
          forwardSeconds: share * forwardSeconds,
        };
      });
    }),
  };
};
