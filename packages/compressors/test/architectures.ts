type Shapes = readonly (readonly number[])[];

const convolution = (kernel: number, input: number, output: number): Shapes => [
  [kernel, kernel, input, output],
  [output],
  [output],
];

/**
 * Returns the parameter shapes of a ResNet with bottleneck blocks for ImageNet (He et al. 2015). `blocks` contains the
 * number of blocks per stage. Kernels are [kh, kw, in, out].
 */
export const resNet = (blocks: readonly number[]): Shapes => [
  ...convolution(7, 3, 64),
  ...blocks.flatMap((count, stage) =>
    Array.from({ length: count }, (_, block) => {
      const width = 64 * 2 ** stage;
      const input = block > 0 ? 4 * width : stage === 0 ? 64 : 2 * width;
      return [
        ...convolution(1, input, width),
        ...convolution(3, width, width),
        ...convolution(1, width, 4 * width),
        ...(block === 0 ? convolution(1, input, 4 * width) : []),
      ];
    }).flat(),
  ),
  [2048, 1000],
  [1000],
];

const linear = (input: number, output: number): Shapes => [[input, output], [output]];
const norm = (width: number): Shapes => [[width], [width]];

/**
 * Returns the parameter shapes of BERT with both pre-training heads (Devlin et al. 2018), for a number of layers and a
 * width. The masked-word head shares its weight with the embedding.
 */
const bert = (depth: number, width: number): Shapes => [
  [width, 30_522],
  [width, 512],
  [width, 2],
  ...norm(width),
  ...Array.from({ length: depth }, () => [
    ...linear(width, width),
    ...linear(width, width),
    ...linear(width, width),
    ...linear(width, width),
    ...norm(width),
    ...linear(width, 4 * width),
    ...linear(4 * width, width),
    ...norm(width),
  ]).flat(),
  ...linear(width, width),
  ...linear(width, width),
  ...norm(width),
  [30_522],
  ...linear(width, 2),
];

export const bertBase = (): Shapes => bert(12, 768);
export const bertLarge = (): Shapes => bert(24, 1024);
