// Trains an autoencoder that compresses digits to sixteen numbers. Samples are images without labels.
// Run: pnpm exec node examples/autoencoder.ts
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Records, takeRecords } from "@skein/data";
import { loadMnist } from "@skein/data/node";
import { dense, initDense, pixels, rowLossModel } from "@skein/models";
import { mean, relu, reshape, sigmoid, splitKey, square, subtract, type Tensor } from "@skein/tensor-core";
import { train } from "skein-train";

/** Returns records of images without labels, from records of digits. */
const imagesOf = ({ count, fields }: Records): Records => ({ count, fields: { image: fields["inputs"]! } });

const sizes = [784, 64, 16, 64, 784];

/** Returns the brightness of the 784 pixels of each image, 0 to 1, f32 [B, 784]. */
const flat = (image: Tensor): Tensor => reshape(pixels(image), [image.shape[0]!, 784]);

const autoencoder = rowLossModel({
  init: (key) => ({
    params: splitKey(key, 4).map((each, i) => initDense(each, [sizes[i]!, sizes[i + 1]!])),
    state: {},
  }),
  apply: (layers, state, { image }: { readonly image: Tensor }) => [
    sigmoid(layers.reduce((x, layer, i) => dense(layer, i === 0 ? x : relu(x)), flat(image))),
    state,
  ],
  losses: (restored, { image }) => mean(square(subtract(restored, flat(image))), { dims: [1] }),
});

const digits = loadMnist({ from: import.meta.url });
const { summary } = await train(
  {
    name: "autoencoder",
    ranks: 2,
    batch: 64,
    steps: 400,
    data: {
      train: takeRecords(imagesOf(digits.train), 12_800),
      test: takeRecords(imagesOf(digits.test), 1000),
      predicts: "own",
    },
    model: autoencoder,
    optimizer: { kind: "adam" },
    learningRate: { peak: 0.01, decay: "cosine" },
    evaluation: { everySteps: 100 },
    callbacks: { onEvaluation: ({ step, loss }) => console.log(`step ${step}: mean square error ${loss.toFixed(4)}`) },
  },
  { output: join(mkdtempSync(join(tmpdir(), "skein-")), "run") },
);
if (!(summary!.testLoss < 0.05)) throw new Error("training went wrong");
