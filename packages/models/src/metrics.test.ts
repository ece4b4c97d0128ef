import { evaluate, full, multiply, NdArray, referenceBackend, type Tensor, valueAndGrad } from "@skein/tensor-core";
import { describe, expect, it } from "vitest";
import { metricsOf, rowMask } from "./metrics.ts";
import { labelledModel } from "./model.ts";

const logits = [
  [2, 0],
  [0, 3],
  [1, 0],
  [NaN, NaN],
];
const lossAt = (row: number, label: number): number =>
  Math.log(Math.exp(logits[row]![0]!) + Math.exp(logits[row]![1]!)) - logits[row]![label]!;

describe("metricsOf", () => {
  it("counts correct predictions and sums losses", async () => {
    const metrics = await evaluate((x: Tensor, labels: Tensor) => metricsOf(x, labels), referenceBackend())(
      NdArray.from(logits.slice(0, 3).flat(), [3, 2]),
      NdArray.from([0, 1, 1], [3], "u8"),
    );
    expect([metrics.correct.item(), metrics.count.item()]).toEqual([2, 3]);
    expect(metrics.lossSum.item()).toBeCloseTo(lossAt(0, 0) + lossAt(1, 1) + lossAt(2, 1), 6);
  });

  it("excludes masked rows, whatever their values", async () => {
    const masked = evaluate(
      (x: Tensor, labels: Tensor, mask: Tensor) => metricsOf(x, labels, mask),
      referenceBackend(),
    );
    const metrics = await masked(
      NdArray.from(logits.flat(), [4, 2]),
      NdArray.from([0, 0, 0, 99], [4], "i32"),
      NdArray.from([1, 1, 0, 0], [4], "bool"),
    );
    expect([metrics.correct.item(), metrics.count.item()]).toEqual([1, 2]);
    expect(metrics.lossSum.item()).toBeCloseTo(lossAt(0, 0) + lossAt(1, 0), 6);
  });

  it("broadcasts a row mask over positions", async () => {
    const spread = await evaluate((mask: Tensor, labels: Tensor) => rowMask(mask, labels), referenceBackend())(
      NdArray.from([1, 0], [2], "bool"),
      NdArray.zeros("i32", [2, 3]),
    );
    expect(spread.toNumbers()).toEqual([1, 1, 1, 0, 0, 0]);
  });
});

describe("labelledModel", () => {
  it("takes the mean over unmasked rows, also in the loss", async () => {
    const model = labelledModel<[], []>({
      init: () => ({ params: [], state: [] }),
      apply: (_, state, inputs) => [inputs, state],
    });
    const loss = evaluate(
      (inputs: Tensor, labels: Tensor, mask: Tensor) =>
        model.loss([], [], { inputs, labels, mask }, { train: true })[0],
      referenceBackend(),
    );
    const value = await loss(
      NdArray.from(logits.flat(), [4, 2]),
      NdArray.from([0, 0, 1, 0], [4], "i32"),
      NdArray.from([1, 0, 1, 0], [4], "bool"),
    );
    expect(value.item()).toBeCloseTo((lossAt(0, 0) + lossAt(2, 1)) / 2, 6);
  });

  it("excludes ignored labels and masked rows from loss and metrics, and smooths labels only in training", async () => {
    const plain = {
      init: () => ({ params: [], state: [] }),
      apply: (_: [], state: [], inputs: Tensor) => [inputs, state] as const,
    };
    const model = labelledModel<[], []>(plain as never, { ignoreIndex: 255, labelSmoothing: 0.2 });
    const run = evaluate((inputs: Tensor, labels: Tensor, mask: Tensor) => {
      const batch = { inputs, labels, mask };
      const contexts = [
        { train: true },
        { train: false },
        { train: true, labelSmoothing: 0.3 },
        { train: true, labelSmoothing: 0 },
      ];
      const losses = contexts.map((context) => model.loss([], [], batch, context)[0]);
      return { losses, metrics: model.evaluate([], [], batch) };
    }, referenceBackend());
    const { losses, metrics } = await run(
      NdArray.from(logits.flat(), [4, 2]),
      NdArray.from([0, 1, 1, 255], [4], "u8"),
      NdArray.from([1, 0, 1, 1], [4], "bool"),
    );
    const wanted = (lossAt(0, 0) + lossAt(2, 1)) / 2;
    const smoothed = 0.8 * wanted + (0.2 * (lossAt(0, 0) + lossAt(0, 1) + lossAt(2, 0) + lossAt(2, 1))) / 4;
    expect(losses[0]!.item()).toBeCloseTo(smoothed, 6);
    expect(losses[1]!.item()).toBeCloseTo(wanted, 6);
    // Loss options of a call override loss options of the model.
    expect(losses[2]!.item()).toBeCloseTo(wanted + 1.5 * (smoothed - wanted), 6);
    expect(losses[3]!.item()).toBeCloseTo(wanted, 6);
    expect([metrics.correct.item(), metrics.count.item()]).toEqual([1, 2]);
    expect(metrics.lossSum.item()).toBeCloseTo(2 * wanted, 6);
  });

  it("has no gradient in masked rows, whatever their values", async () => {
    const model = labelledModel<Tensor, []>({
      init: () => ({ params: full([2], 1), state: [] }),
      apply: (scale, state, x) => [multiply(x, scale), state],
    });
    const gradient = await evaluate(
      (inputs: Tensor, labels: Tensor, mask: Tensor) =>
        valueAndGrad((own: Tensor) => model.loss(full([2], 1), [], { inputs: own, labels, mask }, { train: true })[0])(
          inputs,
        )[1],
      referenceBackend(),
    )(
      NdArray.from([1, 2, NaN, 3, -Infinity, Infinity], [3, 2]),
      NdArray.from([0, 0, -100], [3], "i32"),
      NdArray.from([1, 0, 0], [3], "bool"),
    );
    const p = 1 / (1 + Math.exp(1));
    gradient.toNumbers().forEach((value, i) => expect(value).toBeCloseTo([p - 1, 1 - p, 0, 0, 0, 0][i]!, 6));
    expect(gradient.toNumbers().slice(2)).toEqual([0, 0, 0, 0]);
  });
});
