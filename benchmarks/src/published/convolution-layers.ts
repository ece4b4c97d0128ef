/** Shapes of a convolution or linear layer of an image model, for K-FAC and cost models. */
export interface ConvolutionLayer {
  readonly path: string;
  /** Kernel rows and columns; 1 × 1 for a linear layer. */
  readonly kernel: readonly [number, number];
  readonly inputs: number;
  readonly outputs: number;
  /** Number of output positions; 1 for a linear layer. */
  readonly positions: number;
  /** Whether the layer has a bias. Only linear layers have a bias, because a norm follows each convolution. */
  readonly hasBias: boolean;
}

const convolution = (
  path: string,
  kernel: number | readonly [number, number],
  inputs: number,
  outputs: number,
  side: number,
): ConvolutionLayer => ({
  path,
  kernel: typeof kernel === "number" ? [kernel, kernel] : kernel,
  inputs,
  outputs,
  positions: side ** 2,
  hasBias: false,
});

const head = (inputs: number): ConvolutionLayer => ({
  ...convolution("head", 1, inputs, 1000, 1),
  hasBias: true,
});

/**
 * Returns the layers of a ResNet for images of 224 × 224, in the order of the forward pass, with `blocksOfStages`
 * blocks per stage. Source: He et al. 2015, arXiv 1512.03385, table 1.
 */
const resNet = (blocksOfStages: readonly number[]): readonly ConvolutionLayer[] => [
  convolution("stem", 7, 3, 64, 112),
  ...blocksOfStages.flatMap((blocks, stage) =>
    Array.from({ length: blocks }, (_, block) => {
      const [width, side] = [64 * 2 ** stage, 56 / 2 ** stage];
      const first = block === 0;
      const input = first ? (stage === 0 ? 64 : 2 * width) : 4 * width;
      // A stage has its stride in its first 3 × 3 convolution, so the 1 × 1 convolution before still has the larger
      // image as input.
      const sideBefore = first && stage > 0 ? 2 * side : side;
      const at = `stage-${stage}.${block}`;
      return [
        convolution(`${at}.reduce`, 1, input, width, sideBefore),
        convolution(`${at}.middle`, 3, width, width, side),
        convolution(`${at}.expand`, 1, width, 4 * width, side),
        ...(first ? [convolution(`${at}.shortcut`, 1, input, 4 * width, side)] : []),
      ];
    }).flat(),
  ),
  head(2048),
];

/**
 * Returns the layers of a DenseNet with bottlenecks for images of 224 × 224, growth 32. Source: Huang et al. 2016,
 * arXiv 1608.06993, table 1.
 */
const denseNet = (layersOfBlocks: readonly number[]): readonly ConvolutionLayer[] => {
  const growth = 32;
  const found = [convolution("stem", 7, 3, 64, 112)];
  let [width, side] = [64, 56];
  for (const [block, layers] of layersOfBlocks.entries()) {
    for (let layer = 0; layer < layers; layer++) {
      found.push(
        convolution(`block-${block}.${layer}.narrow`, 1, width, 4 * growth, side),
        convolution(`block-${block}.${layer}.grow`, 3, 4 * growth, growth, side),
      );
      width += growth;
    }
    if (block === layersOfBlocks.length - 1) break;
    // The 2 × 2 average pooling follows the convolution.
    found.push(convolution(`transition-${block}`, 1, width, width / 2, side));
    [width, side] = [width / 2, side / 2];
  }
  return [...found, head(width)];
};

/** Kernel, input channels and output channels of each convolution in a branch. */
type Branch = readonly (readonly [kernel: number | readonly [number, number], inputs: number, outputs: number])[];

const [row7, column7, row3, column3] = [
  [1, 7],
  [7, 1],
  [1, 3],
  [3, 1],
] as const;

/** Inception blocks that a network repeats. All their convolutions have stride 1. */
const inceptionBlocks = {
  a: [
    [[1, 384, 96]],
    [
      [1, 384, 64],
      [3, 64, 96],
    ],
    [
      [1, 384, 64],
      [3, 64, 96],
      [3, 96, 96],
    ],
    [[1, 384, 96]],
  ],
  b: [
    [[1, 1024, 384]],
    [
      [1, 1024, 192],
      [row7, 192, 224],
      [column7, 224, 256],
    ],
    [
      [1, 1024, 192],
      [column7, 192, 192],
      [row7, 192, 224],
      [column7, 224, 224],
      [row7, 224, 256],
    ],
    [[1, 1024, 128]],
  ],
  c: [
    [[1, 1536, 256]],
    [
      [1, 1536, 384],
      [row3, 384, 256],
      [column3, 384, 256],
    ],
    [
      [1, 1536, 384],
      [column3, 384, 448],
      [row3, 448, 512],
      [row3, 512, 256],
      [column3, 512, 256],
    ],
    [[1, 1536, 256]],
  ],
} as const satisfies Record<string, readonly Branch[]>;

const inceptionBlock = (path: string, branches: readonly Branch[], side: number): readonly ConvolutionLayer[] =>
  branches.flatMap((convolutions, branch) =>
    convolutions.map(([kernel, inputs, outputs], i) =>
      convolution(`${path}.${branch}.${i}`, kernel, inputs, outputs, side),
    ),
  );

/**
 * Layers of Inception-v4 for images of 299 × 299. Source: Szegedy et al. 2016, arXiv 1602.07261, figures 3 to 9 (stem,
 * A, reduction A with k, l, m, n = 192, 224, 256, 384, B, reduction B, C).
 */
const inceptionV4: readonly ConvolutionLayer[] = [
  convolution("stem.0", 3, 3, 32, 149),
  convolution("stem.1", 3, 32, 32, 147),
  convolution("stem.2", 3, 32, 64, 147),
  convolution("stem.3", 3, 64, 96, 73),
  convolution("stem.4.0.0", 1, 160, 64, 73),
  convolution("stem.4.0.1", 3, 64, 96, 71),
  convolution("stem.4.1.0", 1, 160, 64, 73),
  convolution("stem.4.1.1", row7, 64, 64, 73),
  convolution("stem.4.1.2", column7, 64, 64, 73),
  convolution("stem.4.1.3", 3, 64, 96, 71),
  convolution("stem.5", 3, 192, 192, 35),
  ...Array.from({ length: 4 }, (_, i) => inceptionBlock(`a.${i}`, inceptionBlocks.a, 35)).flat(),
  convolution("reduce-a.0.0", 3, 384, 384, 17),
  convolution("reduce-a.1.0", 1, 384, 192, 35),
  convolution("reduce-a.1.1", 3, 192, 224, 35),
  convolution("reduce-a.1.2", 3, 224, 256, 17),
  ...Array.from({ length: 7 }, (_, i) => inceptionBlock(`b.${i}`, inceptionBlocks.b, 17)).flat(),
  convolution("reduce-b.0.0", 1, 1024, 192, 17),
  convolution("reduce-b.0.1", 3, 192, 192, 8),
  convolution("reduce-b.1.0", 1, 1024, 256, 17),
  convolution("reduce-b.1.1", row7, 256, 256, 17),
  convolution("reduce-b.1.2", column7, 256, 320, 17),
  convolution("reduce-b.1.3", 3, 320, 320, 8),
  ...Array.from({ length: 3 }, (_, i) => inceptionBlock(`c.${i}`, inceptionBlocks.c, 8)).flat(),
  head(1536),
];

/** Networks of the published stage tables, and two other networks from the table of factor sizes. */
export type NetworkName = "ResNet-50" | "ResNet-101" | "ResNet-152" | "DenseNet-121" | "DenseNet-201" | "Inception-v4";

export const convolutionLayers: Readonly<Record<NetworkName, readonly ConvolutionLayer[]>> = {
  "ResNet-50": resNet([3, 4, 6, 3]),
  "ResNet-101": resNet([3, 4, 23, 3]),
  "ResNet-152": resNet([3, 8, 36, 3]),
  "DenseNet-121": denseNet([6, 12, 24, 16]),
  "DenseNet-201": denseNet([6, 12, 48, 32]),
  "Inception-v4": inceptionV4,
};

/** Returns the number of rows of the factor A: inputs under one kernel position, plus one for the bias. */
export const inputRows = ({ kernel: [rows, columns], inputs, hasBias }: ConvolutionLayer): number =>
  rows * columns * inputs + (hasBias ? 1 : 0);
