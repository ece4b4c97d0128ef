import { dense } from "./dense.ts";
import { residual, sweep } from "./elementwise.ts";
import type { ResidualShape } from "./model-shape.ts";
import { type Module, operator, type Operator, type Part, type PassSetting, work } from "./operator.ts";

/** Size of the images that one operator passes to the next operator: square, with `channels` channels. */
interface Images {
  readonly side: number;
  readonly channels: number;
}

interface Convolution {
  readonly name: string;
  readonly input: Images;
  readonly output: Images;
  readonly kernel: number;
  /** Whether an earlier operator already saves the input of this operator. Default: false. */
  readonly inputIsKept?: boolean;
}

const valuesOf = (setting: PassSetting, { side, channels }: Images): number => setting.batch * side ** 2 * channels;

/**
 * Builds a convolution. Forward takes 2 · kernel² · channels in · values out flops. Backward takes the same number for
 * the image gradient, and again for the weight gradient. Images are read once.
 */
const convolution = (
  setting: PassSetting,
  { name, input, output, kernel, inputIsKept = false }: Convolution,
): Operator => {
  const { valueBytes, weightBytes, training, type } = setting;
  const weights = kernel ** 2 * input.channels * output.channels;
  const inputBytes = valuesOf(setting, input) * valueBytes;
  const outputBytes = valuesOf(setting, output) * valueBytes;
  const storedBytes = weights * weightBytes;
  const flops = 2 * kernel ** 2 * input.channels * valuesOf(setting, output);
  return operator(name, "convolution", {
    type,
    trainable: weights,
    weightBytes: storedBytes,
    forward: work(flops, inputBytes + storedBytes, outputBytes),
    backward: training
      ? [work(flops, outputBytes + storedBytes, inputBytes), work(flops, outputBytes + inputBytes, storedBytes)]
      : [],
    savedBytes: training && !inputIsKept ? inputBytes : 0,
    outputBytes,
  });
};

/**
 * Builds a batch normalization. In training it reads its input twice, first to compute the moments, and saves its
 * input.
 */
const batchNorm = (setting: PassSetting, name: string, images: Images): Operator => {
  const values = valuesOf(setting, images);
  return sweep(setting, name, "batch-norm", {
    read: setting.training ? 2 * values : values,
    written: values,
    flops: (setting.training ? 7 : 2) * values,
    backward: { read: 4 * values, written: values, flops: 11 * values },
    saved: values,
    parameters: 2 * images.channels,
  });
};

/** Builds a ReLU. Its backward pass needs only its result, which the next operator saves. */
const relu = (setting: PassSetting, name: string, images: Images): Operator => {
  const values = valuesOf(setting, images);
  return sweep(setting, name, "relu", {
    read: values,
    written: values,
    flops: values,
    backward: { read: 2 * values, written: values, flops: values },
  });
};

const normalizedConvolution = (
  setting: PassSetting,
  given: Convolution,
  then: "relu" | "nothing" = "relu",
): Module => ({
  name: given.name,
  operators: [
    convolution(setting, given),
    batchNorm(setting, `${given.name} batch norm`, given.output),
    ...(then === "relu" ? [relu(setting, `${given.name} ReLU`, given.output)] : []),
  ],
});

const bottleneck = (
  setting: PassSetting,
  input: Images,
  width: number,
  expansion: number,
  stride: number,
): readonly Module[] => {
  const side = Math.ceil(input.side / stride);
  const narrow = { side: input.side, channels: width };
  const strided = { side, channels: width };
  const output = { side, channels: expansion * width };
  const projects = stride !== 1 || input.channels !== output.channels;
  return [
    normalizedConvolution(setting, { name: "convolution 1×1", input, output: narrow, kernel: 1 }),
    normalizedConvolution(setting, { name: "convolution 3×3", input: narrow, output: strided, kernel: 3 }),
    normalizedConvolution(setting, { name: "convolution 1×1 out", input: strided, output, kernel: 1 }, "nothing"),
    ...(projects
      ? [normalizedConvolution(setting, { name: "shortcut", input, output, kernel: 1, inputIsKept: true }, "nothing")]
      : []),
    {
      name: "residual",
      operators: [residual(setting, "residual", valuesOf(setting, output)), relu(setting, "residual ReLU", output)],
    },
  ];
};

const stemPart = (shape: ResidualShape, setting: PassSetting, output: Images): Part => {
  const input = { side: shape.imageSide, channels: shape.imageChannels };
  const inside = { side: Math.ceil(shape.imageSide / 2), channels: shape.stemWidth };
  const [before, after] = [valuesOf(setting, inside), valuesOf(setting, output)];
  const pool = sweep(setting, "maximum 3×3", "max-pool", {
    read: before,
    written: after,
    flops: 9 * after,
    backward: { read: before + after, written: before, flops: after },
    saved: before,
  });
  return {
    name: "stem",
    repeats: 1,
    recomputable: false,
    inputBytes: 0,
    modules: [
      normalizedConvolution(setting, { name: "convolution 7×7", input, output: inside, kernel: 7 }),
      { name: "maximum 3×3", operators: [pool] },
    ],
  };
};

const headPart = (shape: ResidualShape, setting: PassSetting, input: Images): Part => {
  const { batch, training, valueBytes } = setting;
  const values = valuesOf(setting, input);
  const pooled = batch * input.channels;
  const logits = batch * shape.classes;
  const average = sweep(setting, "average", "mean", {
    read: values,
    written: pooled,
    flops: values,
    backward: { read: pooled, written: values, flops: values },
  });
  const loss = operator("cross-entropy", "cross-entropy", {
    forward: work(5 * logits, logits * valueBytes, logits * valueBytes),
    backward: [work(2 * logits, logits * valueBytes, logits * valueBytes)],
    savedBytes: logits * valueBytes,
    outputBytes: logits * valueBytes,
  });
  const outputs = [{ name: "classes", columns: shape.classes, bias: true }];
  const modules: Module[] = [
    { name: "average", operators: [average] },
    { name: "classes", operators: dense(setting, { rows: batch, inner: input.channels, outputs }) },
    ...(training ? [{ name: "loss", operators: [loss] }] : []),
  ];
  return { name: "head", repeats: 1, recomputable: false, inputBytes: 0, modules };
};

/**
 * Returns the parts of a residual network on a rank, in the order of the forward pass. The equal blocks of a stage form
 * one part.
 */
export const residualParts = (shape: ResidualShape, setting: PassSetting): readonly Part[] => {
  const { stages, stemWidth, expansion, imageSide } = shape;
  let images: Images = { side: Math.ceil(Math.ceil(imageSide / 2) / 2), channels: stemWidth };
  const parts = [stemPart(shape, setting, images)];
  for (const [index, { blocks, width, stride }] of stages.entries()) {
    const block = (name: string, repeats: number, stride: number): Part => {
      const modules = bottleneck(setting, images, width, expansion, stride);
      return { name, repeats, recomputable: true, inputBytes: valuesOf(setting, images) * setting.valueBytes, modules };
    };
    const stage = `stage ${index + 1}`;
    parts.push(block(`${stage}, first block`, 1, stride));
    images = { side: Math.ceil(images.side / stride), channels: expansion * width };
    if (blocks > 1) parts.push(block(`${stage}, others`, blocks - 1, 1));
  }
  return [...parts, headPart(shape, setting, images)];
};
