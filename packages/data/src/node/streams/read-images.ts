import { DataError } from "../../errors.ts";
import type { ShardReader, ShardSample } from "../../streams/shard-place.ts";
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

/** An image that has come by. */
export interface StreamedImage {
  /** Its shard, and what it is called there. */
  readonly name: string;
  /** As it is encoded. */
  readonly bytes: Uint8Array;
  readonly label: number;
}

/** A sample as it stands in a shard, with what of it is there. */
interface Found {
  readonly name: string;
  readonly bytes: Uint8Array | undefined;
  readonly label: string | undefined;
  readonly offset: number;
}

async function* inTar(place: string, names: ImageShards, from: number): AsyncGenerator<Found, void> {
  const bytes = new PiecewiseBytes(place, from);
  try {
    const held = new Map<string, Uint8Array>();
    const keep = async (entry: TarEntry, extension: string): Promise<void> => {
      if (mayBeImage(entry, extension, names)) requireImageSize(entry, bytes.name);
      else if (!isLabel(entry, extension, names)) return;
      held.set(entry.name, (await bytes.at(entry.begin, entry.sizeBytes)).slice());
    };
    for await (const sample of shardSamples(bytes, from, keep)) {
      const image = imageOf(sample, bytes.name, names);
      const label = image && (await labelOf(sample, bytes.name, names, ({ name }) => held.get(name)!));
      if (label === undefined) requireTogether(sample, bytes.name);
      yield {
        name: `${bytes.name}/${sample.key}`,
        bytes: image && held.get(image.name)!,
        label,
        offset: sample.header,
      };
      for (const { name } of sample.files.values()) held.delete(name);
    }
  } finally {
    await bytes.close();
  }
}

async function* inRows(place: string, names: ImageShards, from: number): AsyncGenerator<Found, void> {
  // a copy: it would keep a page of the file in memory
  for await (const { row, bytes, label } of imageRows(place, names, from))
    yield { name: `${pathOf(place)}, row ${row}`, bytes: bytes?.slice(), label, offset: row };
}

/**
 * Images in a shard, in their order.
 *
 * @param left is told of a sample without an image or a label, where such are to be left out.
 */
export const imageReader = (
  { shards, skipDamaged }: Pick<SampleStream, "shards" | "skipDamaged">,
  names: ImageShards,
  left: (name: string, why: string) => void,
): ShardReader<StreamedImage> => {
  const numbers = new Map(names.classes.map((name, number) => [name, number]));
  const samplesIn = names.of === "webdataset" ? inTar : inRows;
  async function* read(place: string, from: number): AsyncGenerator<ShardSample<StreamedImage>, void> {
    for await (const { name, bytes, label, offset } of samplesIn(place, names, from)) {
      if (bytes === undefined || label === undefined) {
        const why = bytes === undefined ? "it has no image" : "it has no label";
        if (!skipDamaged)
          throw new DataError(
            `${name}: ${why}; set image and label to what these are called, ${names.of === "webdataset" ? `${sortedCure}, ` : ""}or leave such samples out with skipDamaged: true`,
          );
        left(name, why);
        continue;
      }
      const number = numbers.get(label);
      if (number === undefined)
        throw new DataError(
          `${name} is of class ${label}, but those to judge by are of ${names.classes.length} others, ${someOf(names.classes)}; put some of each class into testFile, or name all in stream.classes`,
        );
      yield { sample: { name, bytes, label: number }, place: { offset, skip: 0 } };
    }
  }
  return (shard, { offset }) => read(shards[shard]!, offset);
};
