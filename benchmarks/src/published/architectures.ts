import type { GradientProfile } from "@skein/cost-model";
import type { ModelName } from "./seven-methods.ts";

/** Parameters that become ready together, and the multiply-adds of the layer's forward pass per sample. */
interface Layer {
  readonly path: string;
  /** Elements by tensor, in the order of the forward pass. */
  readonly elements: readonly number[];
  readonly multiplyAdds: number;
}

const convolution = (path: string, kernel: number, input: number, output: number, side: number): readonly Layer[] => [
  { path, elements: [kernel ** 2 * input * output], multiplyAdds: kernel ** 2 * input * output * side ** 2 },
  // Batch normalisation reads and writes, but multiplies next to nothing.
  { path: `${path}-norm`, elements: [output, output], multiplyAdds: 0 },
];

const dense = (path: string, input: number, output: number, tokens: number): Layer => ({
  path,
  elements: [input * output, output],
  multiplyAdds: input * output * tokens,
});

/**
 * Layers of a ResNet for images of 224 × 224, in the order of the forward pass, with so many blocks a stage. Source: He
 * et al. 2015, arXiv 1512.03385, table 1.
 */
const resNet = (blocksOfStages: readonly number[]): readonly Layer[] => [
  ...convolution("stem", 7, 3, 64, 112),
  ...blocksOfStages.flatMap((blocks, stage) =>
    Array.from({ length: blocks }, (_, block) => {
      const [width, side] = [64 * 2 ** stage, 56 / 2 ** stage];
      const first = block === 0;
      const input = first ? (stage === 0 ? 64 : 2 * width) : 4 * width;
      // The stride of a stage stands in its first 3 × 3 convolution, so the one before still sees the larger image.
      const sideBefore = first && stage > 0 ? 2 * side : side;
      const at = `stage-${stage}.${block}`;
      return [
        ...convolution(`${at}.reduce`, 1, input, width, sideBefore),
        ...convolution(`${at}.middle`, 3, width, width, side),
        ...convolution(`${at}.expand`, 1, width, 4 * width, side),
        ...(first ? convolution(`${at}.shortcut`, 1, input, 4 * width, side) : []),
      ];
    }).flat(),
  ),
  dense("head", 2048, 1000, 1),
];

const words = 30_522;
/**
 * Tokens of a sequence: those of the first phase of BERT's pre-training. Only shares of time follow from it, which
 * hardly depend on it.
 */
const tokens = 128;

const layerNorm = (path: string, width: number): Layer => ({ path, elements: [width, width], multiplyAdds: 0 });

/**
 * Layers of BERT with both heads of its pre-training, in the order of the forward pass. The scores of words share the
 * embedding, whose gradient is whole only when the backward pass ends, so their work is the head's and their weight the
 * embedding's.
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

/** Models of the seven-method table, and one more of the table of simultaneous collectives. */
export type Architecture = ModelName | "ResNet-152";

const layersOf: Readonly<Record<Architecture, readonly Layer[]>> = {
  "ResNet-50": resNet([3, 4, 6, 3]),
  "ResNet-152": resNet([3, 8, 36, 3]),
  "BERT-Base": bert(12, 768),
  "BERT-Large": bert(24, 1024),
};

/** Multiply-adds of a forward pass of one sample. */
export const multiplyAddsOf = (model: Architecture): number =>
  layersOf[model].reduce((sum, { multiplyAdds }) => sum + multiplyAdds, 0);

/**
 * Profile a model: its gradients of 32 bits in ready order, backward and forward pass shared out by multiply-adds.
 *
 * @param backwardSeconds of the whole pass. @param forwardSeconds all else of an iteration on one GPU.
 */
export const profileOf = (model: Architecture, backwardSeconds: number, forwardSeconds: number): GradientProfile => {
  const total = multiplyAddsOf(model);
  // Work without a gradient of its own (scores of attention) is done before the next gradient is ready.
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
