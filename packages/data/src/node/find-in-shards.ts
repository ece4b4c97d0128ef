import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { type ByteSource, openSource, pathOf } from "./byte-source.ts";
import { filesOfPlaces } from "./files-of-places.ts";
import { type FoundImages, isImage } from "./find-images.ts";
import { type FoundSample, splitSamples } from "./split-samples.ts";
import { type TarEntry, tarEntries } from "./tar-entries.ts";

/** Which shards there are, and what of their samples is image and label. */
export interface ShardOptions {
  /**
   * Tar files, here or by their addresses (`https://…`), folders with such, or several of these; `{000..146}` stands
   * for each of these numbers.
   */
  readonly file: string | readonly string[];
  /** Those to judge by. Default: `testFraction` of the samples, by their names. */
  readonly testFile?: string | readonly string[] | undefined;
  /** What a sample's file with its image is called behind the key. Default: the one that is of an image by its name. */
  readonly image?: string | undefined;
  /** What its file with its label is called. Default: cls. */
  readonly label?: string | undefined;
  /** Key of the label, where that file is JSON. Default: label. */
  readonly field?: string | undefined;
}

const cure = "name tar files of WebDataset";

/** A sample: the files of one key, by what follows it. */
interface Sample {
  readonly key: string;
  readonly files: Map<string, TarEntry>;
}

/** Key and extension: a key ends at the first dot of a file's own name. */
const parted = (name: string): readonly [key: string, extension: string] => {
  const dot = name.indexOf(".", name.lastIndexOf("/") + 1);
  return dot < 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1).toLowerCase()];
};

/** Files that follow each other and have one key are a sample. */
async function* samplesOf(source: ByteSource): AsyncGenerator<Sample, void> {
  let sample: Sample | undefined;
  for await (const entry of tarEntries(source)) {
    const [key, extension] = parted(entry.name);
    if (basename(entry.name).startsWith(".")) continue; // of the system's that made it
    if (sample?.key !== key) {
      if (sample !== undefined) yield sample;
      sample = { key, files: new Map() };
    }
    sample.files.set(extension, entry);
  }
  if (sample !== undefined) yield sample;
}

/** Labels are short; what is longer is none. */
const mostLabelBytes = 2 ** 16;

/** @throws DataError for a sample with images of several kinds, of which none was chosen. */
const imageIn = ({ files, key }: Sample, shard: string, wanted: string | undefined): TarEntry | undefined => {
  if (wanted !== undefined) return files.get(wanted.toLowerCase());
  const images = [...files].filter(([, { name }]) => isImage(name));
  if (images.length > 1)
    throw new DataError(
      `${shard}/${key} has images ${images.map(([extension]) => extension).join(" and ")}; set image to the one to learn from`,
    );
  return images[0]?.[1];
};

const isName = (text: string): boolean => /^[^\p{Cc}\ufffd]{1,200}$/u.test(text);

const labelIn = async (
  { files, key }: Sample,
  source: ByteSource,
  { label = "cls", field = "label" }: ShardOptions,
): Promise<string | undefined> => {
  const entry = files.get(label.toLowerCase());
  if (entry === undefined || entry.sizeBytes > mostLabelBytes) return undefined;
  const { begin, sizeBytes } = entry;
  const text = new TextDecoder().decode(await source.read(begin, begin + sizeBytes)).trim();
  if (!label.toLowerCase().endsWith("json")) return isName(text) ? text : undefined;
  let value: unknown;
  try {
    value = (JSON.parse(text) as Readonly<Record<string, unknown>> | null)?.[field];
  } catch (cause) {
    throw new DataError(`${source.name}/${key}.${label} is no JSON; correct it`, { cause });
  }
  return typeof value === "number" || typeof value === "string" ? String(value) : undefined;
};

/** Samples of some shards; keys of those without image or label go to `incomplete`. */
const samplesIn = async (
  places: string | readonly string[],
  options: ShardOptions,
  incomplete: string[],
): Promise<FoundSample[]> => {
  const found: FoundSample[] = [];
  for (const path of filesOfPlaces(places, ".tar", cure)) {
    const source = await openSource(path, cure);
    try {
      for await (const sample of samplesOf(source)) {
        const entry = imageIn(sample, source.name, options.image);
        const label = entry && (await labelIn(sample, source, options));
        if (entry === undefined || label === undefined) incomplete.push(`${source.name}/${sample.key}`);
        else found.push({ path, entry, label });
      }
    } finally {
      source.close();
    }
  }
  return found;
};

/**
 * Images in shards of WebDataset: tars in which files of one key, up to the first dot of their names, are a sample, one
 * of them an image and one a label, such as `000.jpg` and `000.cls`. Labels are classes by number or by name.
 *
 * @param testFraction in (0, 1), where no shards are there to judge by. With `skipDamaged` samples without an
 * image or a label are left out and counted, instead of giving up.
 * @throws DataError for damaged shards, and for parts without a sample.
 * Source: the WebDataset format, github.com/webdataset/webdataset.
 */
export const findInShards = async (
  options: ShardOptions,
  { testFraction, skipDamaged }: { readonly testFraction: number; readonly skipDamaged: boolean },
): Promise<FoundImages> => {
  const incomplete: string[] = [];
  const learnt = await samplesIn(options.file, options, incomplete);
  const held = options.testFile === undefined ? undefined : await samplesIn(options.testFile, options, incomplete);
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no image, or no label in .${options.label ?? "cls"}; set image and label to what follows the key in names of files, or leave such samples out with skipDamaged: true`,
    );
  const where = pathOf([options.file].flat()[0]!);
  return splitSamples({ learnt, held, where, incomplete }, testFraction);
};
