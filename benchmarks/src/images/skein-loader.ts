import { type LoadedEpoch, loaderOptions } from "./loader-protocol.ts";
import { openImageFolder, Prefetcher } from "@skein/data/node";

// Skein's loader: a thread that assembles batches. SKEIN_BENCH_DECODER names the decoder of images, which runs on
// UV_THREADPOOL_SIZE threads of libuv.
const { folder, epochs, side, batchSize } = loaderOptions(process.argv);
const { train } = await openImageFolder({
  folder,
  size: [side, side],
  channels: 3,
  fit: "stretch",
  testFraction: 0.1,
  skipDamaged: false,
  cacheMegabytes: 0,
  decoder: process.env["SKEIN_BENCH_DECODER"] === "napi-rs" ? "napi-rs" : "sharp",
  from: import.meta.url,
});
const batches = new Prefetcher(train, { batchSize, seed: 1, rank: 0, worldSize: 1 });
const steps = Math.floor(train.count / batchSize);
try {
  for (let epoch = 0; epoch < epochs; epoch++) {
    const began = performance.now();
    let [pixels, labels] = [0, 0];
    for (let step = 0; step < steps; step++) {
      const { batch } = await batches.next();
      const bytes = batch["inputs"]!.bytes();
      for (let at = 0; at < bytes.length; at++) pixels += bytes[at]!;
      for (const label of batch["labels"]!.toNumbers()) labels += label;
    }
    const loaded: LoadedEpoch = {
      seconds: (performance.now() - began) / 1000,
      images: steps * batchSize,
      meanPixel: pixels / (steps * batchSize * side * side * 3),
      labels,
    };
    console.log(JSON.stringify(loaded));
  }
} finally {
  await batches.close();
}
