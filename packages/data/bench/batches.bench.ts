// Measures the number of samples per second assembled into batches, on this thread and in a prefetching worker. Run:
// node bench/batches.bench.ts
import { measure, printMeasurement } from "@skein/measuring";
import {
  type Batch,
  gatherBatch,
  byteRecords,
  type Records,
  sampleBytes,
  textRecords,
  trainingBatches,
} from "../src/index.ts";
import { Prefetcher } from "../src/node.ts";

/** Returns test bytes in memory that this thread and the prefetching worker share. */
const shared = (count: number): Uint8Array => {
  const bytes = new Uint8Array(new SharedArrayBuffer(count));
  for (let i = 0; i < count; i++) bytes[i] = (i * 7919) % 251;
  return bytes;
};

const numImages = 60_000;
const images = byteRecords(numImages, {
  inputs: { bytes: shared(numImages * 784), offsetBytes: 0, strideBytes: 784, dtype: "u8", shape: [28, 28, 1] },
  labels: { bytes: shared(numImages * 4), offsetBytes: 0, strideBytes: 4, dtype: "i32", shape: [] },
});
const problems: readonly (readonly [name: string, records: Records])[] = [
  ["images 28×28", images],
  ["windows of 256 bytes of text", textRecords(shared(1_200_000), 256)],
];

const check = (records: Records, batch: Batch, indices: ArrayLike<number>): void => {
  for (const [name, field] of Object.entries(records.fields)) {
    const bytes = sampleBytes(field);
    const all = batch[name]!.bytes();
    Array.from(indices, (index, i) => {
      const from = field.offsetBytes + index * field.strideBytes;
      if (Buffer.compare(all.subarray(i * bytes, (i + 1) * bytes), field.bytes.subarray(from, from + bytes)) !== 0)
        throw new Error(`${name}: element ${i} of the batch does not hold sample ${index}`);
    });
  }
};

for (const [name, records] of problems) {
  for (const batchSize of [8, 64, 512]) {
    const options = { batchSize, seed: 1, rank: 0, worldSize: 1 };
    const batches = trainingBatches(records.count, options);
    const { indices } = batches.next().value;
    check(records, gatherBatch(records, indices), indices);
    const work = { amount: batchSize, unit: "samples" };
    printMeasurement(
      `${name}, batch ${batchSize}, assembled here`,
      await measure(() => gatherBatch(records, batches.next().value.indices)),
      work,
    );

    const prefetcher = new Prefetcher(records, options);
    try {
      check(records, (await prefetcher.next()).batch, indices);
      printMeasurement(`${name}, batch ${batchSize}, prefetched`, await measure(() => prefetcher.next()), work);
    } finally {
      await prefetcher.close();
    }
  }
}
