import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Samples } from "../../encoded-records.ts";
import { DataError } from "../../errors.ts";
import type { ImageShards, SampleStream, StreamedRecords, TextShards } from "../../streams/streamed-records.ts";
import { isAddress, pathOf } from "../byte-source.ts";
import { someOf, statsAt } from "../files-below.ts";
import { filesOfPlaces } from "../files-of-places.ts";
import { classesOf } from "../find-images.ts";
import { parquetParts, type ParquetOptions, rowsIn } from "../find-in-parquet.ts";
import { samplesIn, type ShardOptions } from "../find-in-shards.ts";
import { imageDecoder } from "../image-decoder.ts";
import { type ImageOptions, loadHeldImages } from "../load-images.ts";
import { readTokenizerText, tokenizerPath } from "../load-tokenizer.ts";
import { defaultDecodesAtOnce, type LazyOptions } from "../open-sources.ts";
import { type FoundSample, numbered } from "../split-samples.ts";
import { formatOf, lineEndings, requireFields } from "../text-format.ts";
import { isCompressed } from "./piecewise.ts";

/** How a stream is read. */
export interface StreamOptions {
  /** Samples that are shuffled together; up to twice as many stay in memory. */
  readonly shuffleBuffer: number;
  /** How many shards are read at once, by all ranks together. Default: 8, or as many as there are ranks. */
  readonly shardsAtOnce?: number | undefined;
}

const cure = "see that it is there, and may be read";

/** The size of a shard here; nobody asks web servers for thousands of them. */
const sizeOf = (place: string): number | undefined => {
  if (isAddress(place)) return undefined;
  const stats = statsAt(place);
  if (stats?.isFile() !== true) throw new DataError(`${place} is no regular file; ${cure}`);
  return stats.size;
};

/** @param what decides how samples are made of the shards. */
const streamOf = (
  shards: readonly string[],
  samples: TextShards | ImageShards,
  { shuffleBuffer, shardsAtOnce }: StreamOptions,
  skipDamaged: boolean,
  what: readonly unknown[],
): SampleStream => {
  const named = shards.map((place) => [basename(pathOf(place)), sizeOf(place)]);
  const digest = createHash("sha256")
    .update(JSON.stringify([named, skipDamaged, ...what]))
    .digest("hex");
  return { shards, samples, skipDamaged, shuffleBuffer, shardsAtOnce, digest };
};

const shardsText = (shards: readonly string[]): string =>
  `samples come by from ${shards.length} ${shards.length === 1 ? "shard" : "shards"}: ${someOf(shards.map(pathOf))}`;

/** Which texts there are, and what they become. */
export interface TextStreamOptions extends StreamOptions {
  /** Files of text, of JSON lines or of Parquet, here or by their addresses, folders with such; .gz are unpacked. */
  readonly file: string | readonly string[];
  /** Key of the text in JSON lines, column of it in Parquet. Default: text. */
  readonly field?: string | undefined;
  /** Behind each text. Default: the token that ends a text, where the tokenizer has one, or an empty line. */
  readonly separator?: string | undefined;
  /** Leave out lines and rows that hold no text, instead of giving up. */
  readonly skipDamaged?: boolean | undefined;
  /** Its place, and the file URL of the module whose dependencies are searched. Default: each byte is a token. */
  readonly tokenizer?: { readonly place: string; readonly from: string } | undefined;
  /** Tokens of a sample. */
  readonly window: number;
}

const textEndings = [...lineEndings, ".md", ".txt"];
const textCure = "name files of text, of JSON lines or of Parquet";

/**
 * Windows of texts that are read while training: fields `inputs` and `labels` as `textRecords` has them, of the texts
 * of each shard one after the other. Nothing of them is read here.
 *
 * @throws DataError for shards that are not there.
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
  const shards = filesOfPlaces(file, endings, textCure);
  requireFields(shards, given);
  const field = given ?? "text";
  const packed = shards.find((place) => isCompressed(place) && formatOf(place) === "rows");
  if (packed !== undefined)
    throw new DataError(`${pathOf(packed)}: Parquet is compressed in itself; unpack the file, and name it`);
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

/** Which images there are. */
export type ImageStreamOptions = ImageOptions &
  StreamOptions & {
    readonly shards:
      | ({ readonly of: "webdataset" } & ShardOptions)
      | ({ readonly of: "image-parquet" } & ParquetOptions);
    /**
     * Names of classes in the order of their numbers, or how many numbers. Default: those that images to judge by have.
     */
    readonly classes?: number | readonly string[] | undefined;
    /** Decode images to judge by while batches are taken. Default: once, now. */
    readonly lazy?: LazyOptions | undefined;
    /** How many images each thread that assembles batches decodes at once. Default: four for each thread of libuv. */
    readonly decodesAtOnce?: number | undefined;
  };

interface FoundShards {
  readonly learnt: readonly string[];
  readonly held: readonly FoundSample[];
  /** In the order of their numbers, where files say so. */
  readonly classes?: readonly string[] | undefined;
}

const needsHeld = (where: string): DataError =>
  new DataError(
    `${where}: nobody knows which part of a stream a sample would fall into; name files to judge by in testFile`,
  );

const tarEndings = [".tar", ".tar.gz", ".tgz"];

const findShards = async (shards: ImageStreamOptions["shards"], incomplete: string[]): Promise<FoundShards> => {
  const where = pathOf([shards.file].flat()[0]!);
  if (shards.of === "webdataset") {
    if (shards.testFile === undefined) throw needsHeld(where);
    return {
      learnt: filesOfPlaces(shards.file, tarEndings, "name tar files of WebDataset"),
      held: await samplesIn(shards.testFile, shards, incomplete),
    };
  }
  const [learnt, heldFiles] = parquetParts(shards);
  if (heldFiles === undefined) throw needsHeld(where);
  const { samples, classes } = await rowsIn(heldFiles, shards, incomplete);
  return { learnt, held: samples, classes };
};

/**
 * Images that are read and decoded while training, `inputs` u8 [rows, columns, channels] and `labels` i32 [], from
 * shards of WebDataset (.tar, also .gz) or rows of Parquet. Those to judge by are read here, nothing of the others.
 *
 * @throws DataError where no images to judge by are named, and as `findInShards` and `findInParquet` of those.
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
  /** Names of the classes, by number. */
  readonly classNames: readonly string[];
  readonly remarks: readonly string[];
}> => {
  const { size, channels, fit, resize, resample, skipDamaged, decoder: decodesBy = "sharp", from } = options;
  const incomplete: string[] = [];
  const { learnt, held, classes: told } = await findShards(shards, incomplete);
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no image, or no label; set image and label to what these are called, or leave such samples out with skipDamaged: true`,
    );
  const classes =
    typeof given === "number"
      ? Array.from({ length: given }, (_, number) => String(number))
      : (given ?? told ?? classesOf(new Set(held.map(({ label }) => label))));
  if (classes.length < 2)
    throw new DataError(
      `${pathOf([shards.testFile ?? shards.file].flat()[0]!)}: ${held.length} samples to judge by are of ${classes.length === 1 ? "one class" : "no class"}; put some of each class into testFile, or name all in stream.classes`,
    );
  const { records, remarks } = await loadHeldImages(numbered(held, classes), options, lazy);
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
      stream: streamOf(learnt, samples, options, skipDamaged, [
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
      `${shardsText(learnt)}; ${records.count} images to judge by, of ${classes.length} classes`,
      ...remarks,
      ...(incomplete.length === 0
        ? []
        : [`${incomplete.length} samples to judge by without an image or a label are left out: ${someOf(incomplete)}`]),
    ],
  };
};
