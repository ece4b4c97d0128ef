import { type Bucket, bucketOf } from "../../src/index.ts";

/**
 * Buckets by number of elements: empty, one element, one word plus one bit, a few elements, and more elements than one
 * workgroup or one pass processes. The buckets contain tensors of all kinds, with the names that rows use.
 */
export const sizedBuckets: Readonly<Record<0 | 1 | 33 | 1000 | 70_001, Bucket>> = {
  0: bucketOf([{ path: "e", shape: [0] }]),
  1: bucketOf([{ path: "s", shape: [] }]),
  33: bucketOf([
    { path: "bias", shape: [3] },
    { path: "dense", shape: [5, 4] },
    { path: "empty", shape: [0, 3] },
    { path: "w", shape: [9] },
    { path: "shift", shape: [] },
  ]),
  1000: bucketOf([
    { path: "bias", shape: [69] },
    { path: "dense", shape: [25, 30] },
    { path: "kernel", shape: [3, 3, 2, 10] },
    { path: "shift", shape: [] },
  ]),
  70_001: bucketOf([
    { path: "dense", shape: [250, 240] },
    { path: "kernel", shape: [3, 3, 16, 64] },
    { path: "w", shape: [784] },
    { path: "shift", shape: [] },
  ]),
};
