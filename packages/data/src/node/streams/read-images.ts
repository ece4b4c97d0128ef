import { DataError } from "../../errors.ts";
import type { ShardReader, ShardSample } from "../../streams/shard-position.ts";
import type { ImageShards, SampleStream } from "../../streams/streamed-records.ts";
import { pathOf } from "../byte-source.ts";
import { someOf } from "../files-below.ts";
import { imageRows } from "../find-in-parquet.ts";
import {
  imageOf,
  isLabel,
  labelOf,
  mayBeImage,
  requireImageSize,
  requireTogether,
  shardSamples,
  sortedCure,
} from "../shard-samples.ts";
import type { TarEntry } from "../tar-entries.ts";
import { PiecewiseBytes } from "./piecewise.ts";

/** An image of a stream. */
export interface StreamedImage {
  /** Name of the shard, and name of the image in the shard. */
  readonly name: string;
  /** Encoded bytes of the image. */
  readonly bytes: Uint8Array;
  readonly label: number;
}

/** A sample found in a shard. Its image or label may be missing. */
interface Found {
  readonly name: string;
  readonly bytes: Uint8Array | undefined;
  readonly label: string | undefined;
  readonly offset: number;
}

async function* inTar(location: string, names: ImageShards, from: number): AsyncGenerator<Found, void> {
  const bytes = new PiecewiseBytes(location, from);
  try {
    const contents = new Map<string, Uint8Array>();
    const keep = async (entry: TarEntry, extension: string): Promise<void> => {
      if (mayBeImage(entry, extension, names)) requireImageSize(entry, bytes.name);
      else if (!isLabel(entry, extension, names)) return;
      contents.set(entry.name, (await bytes.at(entry.begin, entry.sizeBytes)).slice());
    };
    for await (const sample of shardSamples(bytes, from, keep)) {
      const image = imageOf(sample, bytes.name, names);
      const label = image && (await labelOf(sample, bytes.name, names, ({ name }) => contents.get(name)!));
      if (label === undefined) requireTogether(sample, bytes.name);
      yield {
        name: `${bytes.name}/${sample.key}`,
        bytes: image && contents.get(image.name)!,
        label,
        offset: sample.header,
      };
      for (const { name } of sample.files.values()) contents.delete(name);
    }
  } finally {
    await bytes.close();
  }
}

async function* inRows(location: string, names: ImageShards, from: number): AsyncGenerator<Found, void> {
  // copied, because a view would keep a page of the file in memory
  for await (const { row, bytes, label } of imageRows(location, names, from))
    yield { name: `${pathOf(location)}, row ${row}`, bytes: bytes?.slice(), label, offset: row };
}

/**
 * Returns a reader of the images in a shard, in order.
 *
 * @param reportSkipped Called for each skipped sample, which has no image or no label.
 */
export const imageReader = (
  { shards, skipDamaged }: Pick<SampleStream, "shards" | "skipDamaged">,
  names: ImageShards,
  reportSkipped: (name: string, why: string) => void,
): ShardReader<StreamedImage> => {
  const numbers = new Map(names.classes.map((name, number) => [name, number]));
  const samplesIn = names.of === "webdataset" ? inTar : inRows;
  async function* read(location: string, from: number): AsyncGenerator<ShardSample<StreamedImage>, void> {
    for await (const { name, bytes, label, offset } of samplesIn(location, names, from)) {
      if (bytes === undefined || label === undefined) {
        const why = bytes === undefined ? "it has no image" : "it has no label";
        if (!skipDamaged)
          throw new DataError(
            `${name}: ${why}; set image and label to the names of these fields, ${names.of === "webdataset" ? `${sortedCure}, ` : ""}or skip such samples with skipDamaged: true`,
          );
        reportSkipped(name, why);
        continue;
      }
      const number = numbers.get(label);
      if (number === undefined)
        throw new DataError(
          `${name} is of class ${label}, but the test samples have ${names.classes.length} other classes, ${someOf(names.classes)}; add samples of each class to testFile, or list all classes in stream.classes`,
        );
      yield { sample: { name, bytes, label: number }, position: { offset, skip: 0 } };
    }
  }
  return (shard, { offset }) => read(shards[shard]!, offset);
};
