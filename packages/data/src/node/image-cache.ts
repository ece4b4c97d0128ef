import type { EncodedImages, ImageCache } from "../encoded-records.ts";
import { imageState } from "../encoded-records.ts";
import { requireMemory } from "./require-memory.ts";

/**
 * Allocates a cache of decoded images in shared memory.
 *
 * The first images remain in the cache, and no image is evicted. An epoch reads each image once, in random order, so
 * each cached image is a hit in each epoch. LRU eviction would have fewer hits, because it evicts the images that are
 * needed next.
 *
 * @param maxBytes Maximum size of the cache in bytes.
 * @param count Number of images.
 * @throws DataError if memory is insufficient.
 */
export const imageCache = (maxBytes: number, imageBytes: number, count: number): ImageCache => {
  const capacity = Math.min(count, Math.floor(maxBytes / imageBytes));
  requireMemory(
    capacity * imageBytes,
    `${capacity} decoded images in the cache (cacheMegabytes)`,
    "use a smaller cache, or a smaller size",
  );
  return {
    pixels: new Uint8Array(new SharedArrayBuffer(capacity * imageBytes)),
    imageBytes,
    capacity,
    numReserved: new Int32Array(new SharedArrayBuffer(4)),
  };
};

/** Returns the pixels of a cached image. Undefined if the image is not cached. */
export const cachedPixels = ({ cache, states }: EncodedImages, image: number): Uint8Array | undefined => {
  const slot = Atomics.load(states, image);
  return slot > 0 ? cache.pixels.subarray((slot - 1) * cache.imageBytes, slot * cache.imageBytes) : undefined;
};

/** Caches the pixels of an image if there is room, unless another thread is caching the same image. */
export const cachePixels = ({ cache, states }: EncodedImages, image: number, pixels: Uint8Array): void => {
  if (Atomics.load(cache.numReserved, 0) >= cache.capacity) return;
  if (Atomics.compareExchange(states, image, imageState.unknown, imageState.caching) !== imageState.unknown) return;
  const slot = Atomics.add(cache.numReserved, 0, 1);
  if (slot >= cache.capacity) {
    Atomics.store(states, image, imageState.unknown);
    return;
  }
  cache.pixels.set(pixels, slot * cache.imageBytes);
  Atomics.store(states, image, slot + 1);
};
