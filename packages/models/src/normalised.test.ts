import { ArgumentError, evaluate, mean, NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { labelledModel, type Model } from "./model.ts";
import { type ChannelStatistics, normalised } from "./normalised.ts";

/** A model that returns its normalised inputs as logits: [B, 3] for images [B, 1, 1, 3]. */
const mirror = labelledModel<object, object>({
  init: () => ({ params: {}, state: {} }),
  apply: (_, state, inputs) => [mean(inputs, { dims: [1, 2] }), state],
});

const seen = (images: NdArray, statistics: ChannelStatistics): Promise<NdArray> => {
  const model = normalised(mirror as Model, statistics);
  const f = (inputs: Tensor): Tensor => model.apply({}, {}, inputs, { train: false })[0];
  return evaluate(f, referenceBackend())(images);
};

const finite = (min: number, max: number): fc.Arbitrary<number> => fc.double({ min, max, noNaN: true });
const three = (of: fc.Arbitrary<number>): fc.Arbitrary<number[]> => fc.array(of, { minLength: 3, maxLength: 3 });

test("bytes and floats are normalised by the mean and deviation of their channel", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(three(fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.oneof(three(finite(-1, 1)), fc.array(finite(-1, 1), { minLength: 1, maxLength: 1 })),
      fc.oneof(three(finite(0.1, 2)), fc.array(finite(0.1, 2), { minLength: 1, maxLength: 1 })),
      async (pixels, means, std) => {
        const shape = [pixels.length, 1, 1, 3];
        const expected = pixels.flatMap((pixel) =>
          pixel.map((byte, c) => (byte / 255 - (means[c] ?? means[0]!)) / (std[c] ?? std[0]!)),
        );
        const bytes = NdArray.from(pixels.flat(), shape, "u8");
        const floats = NdArray.from(
          pixels.flat().map((byte) => byte / 255),
          shape,
        );
        for (const images of [bytes, floats]) {
          const values = (await seen(images, { mean: means, std })).toNumbers();
          for (const [i, value] of values.entries()) expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-5);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test("loss and metrics are computed from normalised inputs", async () => {
  const statistics = { mean: [0.1, 0.2, 0.3], std: [0.5, 0.25, 2] };
  const images = NdArray.from([0, 51, 255, 204, 102, 0], [2, 1, 1, 3], "u8");
  const labels = NdArray.from([2, 0], [2], "i32");
  const logits = await seen(images, statistics);
  const model = normalised(mirror as Model, statistics);
  const batch = (inputs: Tensor, own: Tensor) => ({ inputs, labels: own });
  const judged = (of: Model) => (inputs: Tensor, own: Tensor) => ({
    loss: of.loss({}, {}, batch(inputs, own), { train: true })[0],
    sum: of.evaluate({}, {}, batch(inputs, own)).lossSum,
  });
  const expected = await evaluate(judged(mirror as Model), referenceBackend())(
    NdArray.from(logits.toNumbers(), [2, 1, 1, 3]),
    labels,
  );
  const found = await evaluate(judged(model), referenceBackend())(images, labels);
  expect(found.loss.item()).toBeCloseTo(expected.loss.item(), 5);
  expect(found.sum.item()).toBeCloseTo(expected.sum.item(), 5);
  expect(model.init(randomKey(0) as unknown as Tensor)).toEqual({ params: {}, state: {} });
});

test("rejects statistics for another number of channels and deviations that cannot be divided by", async () => {
  const images = NdArray.from([1, 2, 3], [1, 1, 1, 3], "u8");
  await expect(async () => seen(images, { mean: [0, 0], std: [1] })).rejects.toThrow(
    "mean has 2 numbers, but the inputs, [1, 1, 1, 3], have 3 channels; give one number per channel, or one for all",
  );
  for (const bad of [0, -1, Number.NaN])
    expect(() => normalised(mirror as Model, { mean: [0], std: [bad] })).toThrow(ArgumentError);
});
