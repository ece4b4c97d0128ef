import { DataError } from "../errors.ts";
import { openSource, pathOf } from "./byte-source.ts";
import { filesAtLocations } from "./files-at-locations.ts";
import type { FoundImages } from "./find-images.ts";
import { imageOf, labelOf, requireTogether, shardSamples } from "./shard-samples.ts";
import { type FoundSample, splitSamples } from "./split-samples.ts";
import { SourcePieces } from "./tar-entries.ts";

/** Location of tar shards, and the extensions of the image and label files in each sample. */
export interface ShardOptions {
  /**
   * Location of tar files: a path, a URL (`https://…`), a folder, or a list of locations. `{000..146}` in a path or URL
   * expands to each number.
   */
  readonly file: string | readonly string[];
  /** Location of the test shards. Default: `testFraction` of the samples is held out, chosen by name. */
  readonly testFile?: string | readonly string[] | undefined;
  /** Extension of the image file, after the sample's key. Default: any image extension. */
  readonly image?: string | undefined;
  /** Extension of the label file. Default: cls. */
  readonly label?: string | undefined;
  /** Key of the label in a JSON label file. Default: label. */
  readonly field?: string | undefined;
}

const cure = "give tar files of WebDataset";

/** Returns the samples of some shards. Appends the keys of samples without an image or a label to `incomplete`. */
export const samplesIn = async (
  locations: string | readonly string[],
  { image, label = "cls", field = "label" }: Omit<ShardOptions, "file">,
  incomplete: string[],
): Promise<FoundSample[]> => {
  const names = { image, label, field };
  const found: FoundSample[] = [];
  for (const path of filesAtLocations(locations, [".tar"], cure)) {
    const source = await openSource(path, cure, "tar");
    try {
      for await (const sample of shardSamples(new SourcePieces(source))) {
        const entry = imageOf(sample, source.name, names);
        const sampleLabel =
          entry &&
          (await labelOf(sample, source.name, names, ({ begin, sizeBytes }) => source.read(begin, begin + sizeBytes)));
        if (entry === undefined || sampleLabel === undefined) {
          requireTogether(sample, source.name);
          incomplete.push(`${source.name}/${sample.key}`);
        } else found.push({ path, entry, label: sampleLabel });
      }
    } finally {
      source.close();
    }
  }
  return found;
};

/**
 * Finds images in WebDataset shards: tar archives in which the files with the same key (the name up to the first dot)
 * form a sample. One of these files is the image, and another file is the label, such as `000.jpg` and `000.cls`.
 * Labels are class numbers or names. Source: the WebDataset format, github.com/webdataset/webdataset.
 *
 * @param testFraction Fraction to hold out, in (0, 1), if there are no test shards. With `skipDamaged`, samples without
 * an image or a label are excluded and counted instead of causing an error.
 * @throws DataError if a shard is damaged, or if the training part or the held-out part has no samples.
 */
export const findInShards = async (
  options: ShardOptions,
  { testFraction, skipDamaged }: { readonly testFraction: number; readonly skipDamaged: boolean },
): Promise<FoundImages> => {
  const incomplete: string[] = [];
  const training = await samplesIn(options.file, options, incomplete);
  const heldOut = options.testFile === undefined ? undefined : await samplesIn(options.testFile, options, incomplete);
  if (incomplete.length > 0 && !skipDamaged)
    throw new DataError(
      `${incomplete[0]} has no image, or no label in .${options.label ?? "cls"}; set image and label to the part of the file names after the key, or skip such samples with skipDamaged: true`,
    );
  const where = pathOf([options.file].flat()[0]!);
  return splitSamples({ training, heldOut, where, incomplete }, testFraction);
};
