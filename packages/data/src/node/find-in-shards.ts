import { DataError } from "../errors.ts";
import { openSource, pathOf } from "./byte-source.ts";
import { filesOfPlaces } from "./files-of-places.ts";
import type { FoundImages } from "./find-images.ts";
import { imageOf, labelOf, requireTogether, shardSamples } from "./shard-samples.ts";
import { type FoundSample, splitSamples } from "./split-samples.ts";
import { SourcePieces } from "./tar-entries.ts";

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

/** Samples of some shards; keys of those without image or label go to `incomplete`. */
export const samplesIn = async (
  places: string | readonly string[],
  { image, label = "cls", field = "label" }: Omit<ShardOptions, "file">,
  incomplete: string[],
): Promise<FoundSample[]> => {
  const names = { image, label, field };
  const found: FoundSample[] = [];
  for (const path of filesOfPlaces(places, [".tar"], cure)) {
    const source = await openSource(path, cure, "tar");
    try {
      for await (const sample of shardSamples(new SourcePieces(source))) {
        const entry = imageOf(sample, source.name, names);
        const of =
          entry &&
          (await labelOf(sample, source.name, names, ({ begin, sizeBytes }) => source.read(begin, begin + sizeBytes)));
        if (entry === undefined || of === undefined) {
          requireTogether(sample, source.name);
          incomplete.push(`${source.name}/${sample.key}`);
        } else found.push({ path, entry, label: of });
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
