import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Samples } from "../../encoded-records.ts";
import { DataError } from "../../errors.ts";
import type { ImageShards, SampleStream, StreamedRecords, TextShards } from "../../streams/streamed-records.ts";
import { isAddress, pathOf } from "../byte-source.ts";
import { someOf, statsAt } from "../files-below.ts";
import { filesAtLocations } from "../files-at-locations.ts";
import { classesOf } from "../find-images.ts";
import { parquetParts, type ParquetOptions, rowsIn } from "../find-in-parquet.ts";
import { samplesIn, type ShardOptions } from "../find-in-shards.ts";
import { imageDecoder } from "../image-decoder.ts";
import { type ImageOptions, loadTestImages } from "../load-images.ts";
import { readTokenizerText, tokenizerPath } from "../load-tokenizer.ts";
import { defaultDecodesAtOnce, type LazyOptions } from "../open-sources.ts";
import { type FoundSample, numbered } from "../split-samples.ts";
import { formatOf, lineEndings, requireFields } from "../text-format.ts";
import { isCompressed } from "./piecewise.ts";

/** Options for reading a stream of samples. */
export interface StreamOptions {
  /** Number of samples that are shuffled together. Up to twice as many samples are in memory. */
  readonly shuffleBuffer: number;
  /** Number of shards read concurrently over all ranks. Default: 8, or the number of ranks if larger. */
  readonly shardsAtOnce?: number | undefined;
}

const cure = "check that the file exists and is readable";

/**
 * Returns the size of a local shard in bytes. Undefined for a URL, because thousands of requests would take too long.
 */
const sizeOf = (location: string): number | undefined => {
  if (isAddress(location)) return undefined;
  const stats = statsAt(location);
  if (stats?.isFile() !== true) throw new DataError(`${location} is not a regular file; ${cure}`);
  return stats.size;
};

/**
 * Returns a stream of samples from shards, with its digest.
 *
 * @param what Parameters that determine how samples are made from the shards. The digest includes them.
 */
const streamOf = (
  shards: readonly string[],
  samples: TextShards | ImageShards,
  { shuffleBuffer, shardsAtOnce }: StreamOptions,
  skipDamaged: boolean,
  what: readonly unknown[],
): SampleStream => {
  const named = shards.map((location) => [basename(pathOf(location)), sizeOf(location)]);
  const digest = createHash("sha256")
    .update(JSON.stringify([named, skipDamaged, ...what]))
    .digest("hex");
  return { shards, samples, skipDamaged, shuffleBuffer, shardsAtOnce, digest };
};

const shardsText = (shards: readonly string[]): string =>
  `samples are streamed from ${shards.length} ${shards.length === 1 ? "shard" : "shards"}: ${someOf(shards.map(pathOf))}`;

/** Text files to stream, and their conversion to tokens. */
export interface TextStreamOptions extends StreamOptions {
  /** Text, JSON Lines or Parquet files (paths or URLs), or folders with such files. `.gz` files are decompressed. */
  readonly file: string | readonly string[];
  /** Key of the text in JSON lines, or column of the text in Parquet. Default: text. */
  readonly field?: string | undefined;
  /**
   * Text inserted after each document. Default: the tokenizer's end-of-text token, or an empty line if no such token
   * exists.
   */
  readonly separator?: string | undefined;
  /** Whether lines and rows without text are skipped instead of causing an error. */
  readonly skipDamaged?: boolean | undefined;
  /**
   * Location of the tokenizer, and file URL of the module from which its package is resolved. Absent: each byte is a
   * token.
   */
  readonly tokenizer?: { readonly place: string; readonly from: string } | undefined;
  /** Number of tokens per sample. */
  readonly window: number;
}

const textEndings = [...lineEndings, ".md", ".txt"];
const textCure = "give text, JSON Lines or Parquet files";

/**
 * Opens texts as a stream of windows that are read during training. Fields `inputs` and `labels` as in `textRecords`,
 * from the concatenated texts of each shard. This function reads no text.
 *
 * @throws DataError if a shard is missing.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("shard.jsonl", JSON.stringify({ text: "Call me Ishmael. ".repeat(20) }));
 * const { train } = openTextStream({ file: "shard.jsonl", window: 8, shuffleBuffer: 16 });
 * console.log(isStreamed(train)); // true
 * ```
 */
export const openTextStream = ({
  file,
  field: given,
  separator,
  skipDamaged = false,
  tokenizer,
  window,
  ...options
}: TextStreamOptions): { readonly train: StreamedRecords; readonly remarks: readonly string[] } => {
  const endings = [...textEndings, ...textEndings.map((ending) => `${ending}.gz`), ".parquet"];
  const shards = filesAtLocations(file, endings, textCure);
  requireFields(shards, given);
  const field = given ?? "text";
  const packed = shards.find((location) => isCompressed(location) && formatOf(location) === "rows");
  if (packed !== undefined)
    throw new DataError(
      `${pathOf(packed)}: Parquet files are already compressed; decompress the file and give its path`,
    );
  const samples: TextShards = { of: "texts", field, separator, tokenizer, window };
  const spec = { dtype: tokenizer === undefined ? "u8" : "i32", shape: [window] } as const;
  const ofTokenizer = tokenizer && readTokenizerText(tokenizerPath(tokenizer.place));
  return {
    train: {
      count: Number.POSITIVE_INFINITY,
      fields: { inputs: spec, labels: spec },
      stream: streamOf(shards, samples, options, skipDamaged, ["texts", field, separator ?? null, ofTokenizer ?? null]),
    },
    remarks: [shardsText(shards)],
  };
};

/** Shards of images to stream. */
export type ImageStreamOptions = ImageOptions &
  StreamOptions & {
    readonly shards:
      | ({ readonly of: "webdataset" } & ShardOptions)
      | ({ readonly of: "image-parquet" } & ParquetOptions);
    /** Class names in the order of labels, or the number of classes. Default: the classes of the test images. */
    readonly classes?: number | readonly string[] | undefined;
    /** Options for decoding test images when batches need them. Absent: this function decodes all test images. */
    readonly lazy?: LazyOptions | undefined;
    /** Maximum number of concurrent decodes per batch-assembly thread. Default: four per libuv thread. */
    readonly decodesAtOnce?: number | undefined;
  };

interface FoundShards {
  readonly training: readonly string[];
  readonly heldOut: readonly FoundSample[];
  /** Class names in the order of labels, if the files list them. */
  readonly classes?: readonly string[] | undefined;
}

const missingTestFiles = (where: string): DataError =>
  new DataError(`${where}: a stream cannot be split into training and test samples; give test files in testFile`);

const tarEndings = [".tar", ".tar.gz", ".tgz"];

const findShards = async (shards: ImageStreamOptions["shards"], incomplete: string[]): Promise<FoundShards> => {
  const where = pathOf([shards.file].flat()[0]!);
  if (shards.of === "webdataset") {
    if (shards.testFile === undefined) throw missingTestFiles(where);
    return {
      training: filesAtLocations(shards.file, tarEndings, "give tar files of WebDataset"),
      heldOut: await samplesIn(shards.testFile, shards, incomplete),
    };
  }
  const [training, testFiles] = parquetParts(shards);
  if (testFiles === undefined) throw missingTestFiles(where);
  const { samples, classes } = await rowsIn(testFiles, shards, incomplete);
  return { training, heldOut: samples, classes };
};

/**
 * Opens images that are read and decoded during training, from WebDataset shards (.tar, also .gz) or Parquet rows.
 * Fields: `inputs` u8 [rows, columns, channels] and `labels` i32 []. This function reads the test images, but not the
 * training images.
 *
 * @throws DataError if there are no test files, or if `findInShards` or `findInParquet` throws it for the test images.
 */
export const openImageStream = async ({
  shards,
  classes: given,
  lazy,
  decodesAtOnce = defaultDecodesAtOnce(),
  ...options
}: ImageStreamOptions): Promise<{
  readonly train: StreamedRecords;
  readonly test: Samples;
  readonly classes: number;
  /** Class names, by label. */
  readonly classNames: readonly string[];
  readonly remarks: readonly string[];
}> => {
  const { size, channels, fit, resize, resample, skipDamaged, decoder: decodesBy = "sharp", from } = options;
  const incomplete: string[] = [];
  const { training, heldOut, classes: declared } = await findShards(shards, incomplete);
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no image, or no label; set image and label to the names of these fields, or skip such samples with skipDamaged: true`,
    );
  const classes =
    typeof given === "number"
      ? Array.from({ length: given }, (_, number) => String(number))
      : (given ?? declared ?? classesOf(new Set(heldOut.map(({ label }) => label))));
  if (classes.length < 2)
    throw new DataError(
      `${pathOf([shards.testFile ?? shards.file].flat()[0]!)}: ${heldOut.length} test samples are of ${classes.length === 1 ? "one class" : "no class"}; add samples of each class to testFile, or list all classes in stream.classes`,
    );
  const { records, remarks } = await loadTestImages(numbered(heldOut, classes), options, lazy);
  const decoding = { size: lazy?.decodeSize ?? size, channels, fit, resize, resample };
  const { image, label = shards.of === "webdataset" ? "cls" : "label" } = shards;
  const field = ("field" in shards ? shards.field : undefined) ?? "label";
  const samples: ImageShards = {
    of: shards.of,
    image,
    label,
    field,
    classes,
    decoding,
    decodesBy,
    decoder: imageDecoder(from, decodesBy).version,
    decodesAtOnce,
    from,
  };
  return {
    train: {
      count: Number.POSITIVE_INFINITY,
      fields: { inputs: { dtype: "u8", shape: [...size, channels] }, labels: { dtype: "i32", shape: [] } },
      stream: streamOf(training, samples, options, skipDamaged, [
        shards.of,
        image ?? null,
        label,
        field,
        classes,
        decoding,
      ]),
    },
    test: records,
    classes: classes.length,
    classNames: classes,
    remarks: [
      `${shardsText(training)}; ${records.count} test images, ${classes.length} classes`,
      ...remarks,
      ...(incomplete.length === 0
        ? []
        : [`${incomplete.length} test samples without an image or a label were skipped: ${someOf(incomplete)}`]),
    ],
  };
};
