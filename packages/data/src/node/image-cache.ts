import type { EncodedImages, ImageCache } from "../encoded-records.ts";
import { imageState } from "../encoded-records.ts";
import { requireMemory } from "./require-memory.ts";

/**
 * Room for decoded images in shared memory.
 *
 * What came first stays. An epoch visits each image once, in an order of its own, so whichever images are kept, an
 * epoch finds just these; with what was used least lately given away it would find fewer, since what it comes to next
 * is what was given away long ago.
 *
 * @param mostBytes bound. @param count of images that there are.
 * @throws DataError where there is no such room.
 */
export const imageCache = (mostBytes: number, imageBytes: number, count: number): ImageCache => {
  const capacity = Math.min(count, Math.floor(mostBytes / imageBytes));
  requireMemory(
    capacity * imageBytes,
    `${capacity} decoded images in the cache (cacheMegabytes)`,
    "use a smaller cache, or a smaller size",
  );
  return {
    pixels: new Uint8Array(new SharedArrayBuffer(capacity * imageBytes)),
    imageBytes,
    capacity,
    given: new Int32Array(new SharedArrayBuffer(4)),
  };
};

/** The pixels of an image that is kept; undefined for another. */
export const keptPixels = ({ cache, states }: EncodedImages, image: number): Uint8Array | undefined => {
  const place = Atomics.load(states, image);
  return place > 0 ? cache.pixels.subarray((place - 1) * cache.imageBytes, place * cache.imageBytes) : undefined;
};

/** Keep the pixels of an image while there is room, unless a thread does so already. */
export const keepPixels = ({ cache, states }: EncodedImages, image: number, pixels: Uint8Array): void => {
  if (Atomics.load(cache.given, 0) >= cache.capacity) return;
  if (Atomics.compareExchange(states, image, imageState.unknown, imageState.beingKept) !== imageState.unknown) return;
  const place = Atomics.add(cache.given, 0, 1);
  if (place >= cache.capacity) {
    Atomics.store(states, image, imageState.unknown);
    return;
  }
  cache.pixels.set(pixels, place * cache.imageBytes);
  Atomics.store(states, image, place + 1);
};
