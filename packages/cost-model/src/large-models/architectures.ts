import { ArgumentError } from "@skein/tensor-core";
import type { ModelShape, ResidualShape, TransformerShape } from "./model-shape.ts";

const gpt2 = (name: string, width: number, layers: number, heads: number): TransformerShape => ({
  kind: "transformer",
  name,
  source: "Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2; github.com/openai/gpt-2",
  vocabulary: 50_257,
  contextLength: 1024,
  width,
  layers,
  heads,
  keyValueHeads: heads,
  hidden: 4 * width,
  gated: false,
  norm: "layer",
  positions: "learned",
  biases: true,
  tiedHead: true,
});

interface LlamaSizes {
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly hidden: number;
}

const llama2 = (name: string, sizes: LlamaSizes): TransformerShape => ({
  kind: "transformer",
  name,
  source: "Touvron et al. 2023, arXiv 2307.09288, table 1 and section 2.2; sizes of the feed-forward part as released",
  vocabulary: 32_000,
  contextLength: 4096,
  ...sizes,
  gated: true,
  norm: "rms",
  positions: "rotary",
  biases: false,
  tiedHead: false,
});

/** ResNet-50 with the stride in the 3×3 convolution, as in all current libraries. */
const resNet50: ResidualShape = {
  kind: "residual",
  name: "resnet-50",
  source: "He et al. 2015, arXiv 1512.03385, table 1",
  imageSide: 224,
  imageChannels: 3,
  classes: 1000,
  stemWidth: 64,
  expansion: 4,
  stages: [
    { blocks: 3, width: 64, stride: 1 },
    { blocks: 4, width: 128, stride: 2 },
    { blocks: 6, width: 256, stride: 2 },
    { blocks: 3, width: 512, stride: 2 },
  ],
};

/** Shapes of published models, for `modelNamed`. */
export const architectures: readonly ModelShape[] = [
  gpt2("gpt-2", 768, 12, 12),
  gpt2("gpt-2-medium", 1024, 24, 16),
  gpt2("gpt-2-large", 1280, 36, 20),
  gpt2("gpt-2-xl", 1600, 48, 25),
  llama2("llama-2-7b", { width: 4096, layers: 32, heads: 32, keyValueHeads: 32, hidden: 11_008 }),
  llama2("llama-2-13b", { width: 5120, layers: 40, heads: 40, keyValueHeads: 40, hidden: 13_824 }),
  llama2("llama-2-70b", { width: 8192, layers: 80, heads: 64, keyValueHeads: 8, hidden: 28_672 }),
  resNet50,
];

/**
 * Finds a model by name.
 *
 * @throws ArgumentError that lists the known names, if the name is unknown.
 * @example
 * ```ts
 * console.log(parameterCount(modelNamed("llama-2-7b"))); // 6738415616
 * ```
 */
export const modelNamed = (name: string): ModelShape => {
  const found = architectures.find((shape) => shape.name === name);
  if (found === undefined)
    throw new ArgumentError(
      `no model is named "${name}"; use one of ${architectures.map(({ name }) => name).join(", ")}, or a shape`,
    );
  return found;
};
