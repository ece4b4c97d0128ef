import { arrayRecords } from "@skein/data";
import { mlp } from "@skein/models";
import type { Prediction } from "@skein/step/node";
import { NdArray, type Tensor, trace, zeros } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { checkedData } from "./checked-data.ts";
import { checkedModel } from "./checked-model.ts";
import { dataDigest } from "./data-digest.ts";

const arrays = (count: number, width = 2): { readonly inputs: NdArray; readonly labels: NdArray } => ({
  inputs: NdArray.from(Array<number>(count * width).fill(1), [count, width]),
  labels: NdArray.from(Array<number>(count).fill(0), [count], "i32"),
});
const records = arrayRecords(arrays(4));
const good = { train: records, test: arrayRecords(arrays(2)), predicts: "classes", classes: 2 };

describe("a user's data", () => {
  test("is shared, once", () => {
    const { train } = checkedData(good, "data");
    expect(train.fields["inputs"]!.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
    const again = checkedData({ ...good, train }, "data");
    expect(again.train.fields["inputs"]!.bytes.buffer).toBe(train.fields["inputs"]!.bytes.buffer);
  });

  const images = { inputs: NdArray.from(Array(16).fill(1), [1, 4, 4, 1], "u8"), labels: NdArray.from([0], [1], "i32") };
  const pictures = { ...good, train: arrayRecords(images), test: arrayRecords(images) };

  const words = NdArray.zeros("i32", [2, 4]);
  const tree = { query: { words }, pages: [NdArray.zeros("f32", [2])] };
  const own = { train: arrayRecords(tree), test: arrayRecords(tree), predicts: "own" };

  test("keeps its description and that of its images, and augmentation is part of the samples' hash", () => {
    const jitter = { brightness: 0.5, contrast: 0, saturation: 0 };
    const augmentation = { cropPadding: 1, flip: true, jitter };
    expect(
      checkedData({ ...pictures, augmentation, remarks: ["of 1998"], classNames: ["cat", "dog"] }, "data"),
    ).toMatchObject({
      classNames: ["cat", "dog"],
      augmentation,
      remarks: ["of 1998"],
    });
    const digests = [undefined, augmentation, { ...augmentation, flip: false }].map((change) =>
      dataDigest(checkedData({ ...pictures, augmentation: change }, "data")),
    );
    expect(new Set(digests).size).toBe(3);
  });

  test.each<[object, RegExp]>([
    [{ ...good, remarks: "of 1998" }, /^data: remarks is "of 1998", but must be a list of lines/],
    [
      { ...pictures, augmentation: { crop: 4 } },
      /^data: augmentation is \{"crop":4\}, but must be \{ cropPadding, flip \}/,
    ],
    [
      { ...pictures, augmentation: { cropPadding: 4, flip: true } },
      /^data: augmentation\.cropPadding: images of 4×4 cannot be shifted by 4 pixels, .*; use less than 4/,
    ],
    [
      { ...pictures, augmentation: { cropPadding: 0, flip: true, resizedCrop: { scale: [1, 0.5], ratio: [1, 1] } } },
      /^data: augmentation\.resizedCrop is .*, but must be \{ scale, ratio \}/,
    ],
    [
      { ...pictures, augmentation: { cropPadding: 1, flip: true, resizedCrop: { scale: [0.5, 1], ratio: [1, 1] } } },
      /^data: augmentation\.cropPadding is 1, but must be 0 with resizedCrop/,
    ],
    [
      { ...pictures, augmentation: { cropPadding: 0, flip: true, jitter: { brightness: -1 } } },
      /^data: augmentation\.jitter is .*, but must be \{ brightness, contrast, saturation \}, each from 0/,
    ],
    [
      { ...good, augmentation: { cropPadding: 0, flip: true } },
      /augmentation: it changes images of bytes .*, but the inputs are f32\[2\]; remove it/,
    ],
    [
      { ...good, predicts: "digits" },
      /^data: predicts is "digits", but must be one of classes, bytes, tokens, values, own; /,
    ],
    [{ ...good, classes: undefined }, /^data: classes is nothing, but must be the number of classes to choose from/],
    [
      { ...good, classNames: ["cat"] },
      /^data: classNames is \["cat"\], but must be a list of 2 different texts, one per class; correct it/,
    ],
    [{ ...good, classNames: ["cat", "cat"] }, /^data: classNames is .*, but must be a list of 2 different texts/],
    [{ ...good, classNames: ["cat", 7] }, /^data: classNames is .*, but must be a list of 2 different texts/],
    [{ ...good, classes: 2.5 }, /^data: classes is 2\.5, but must be/],
    [{ ...good, predicts: "values" }, /^data: classes is 2, but predicts: values has no classes; remove it/],
    [{ ...good, train: [1, 2] }, /^data: train is \[1,2\], but must be records; make them with arrayRecords/],
    [
      { ...good, test: arrayRecords({ inputs: arrays(2).inputs }) },
      /^data: test has the fields inputs, but no labels; name the fields/,
    ],
    [{ ...good, test: arrayRecords(arrays(0)) }, /^data: test has 0 samples; give at least one/],
    [
      { ...good, test: arrayRecords(arrays(2, 3)) },
      /^data: at inputs a sample of train has f32\[2\], a sample of test f32\[3\]; both must have the same fields \(train has/,
    ],
    [
      { ...own, test: arrayRecords({ query: { words: NdArray.zeros("i32", [2, 5]) }, pages: tree.pages }) },
      /^data: at query\.words a sample of train has i32\[4\], a sample of test i32\[5\]; /,
    ],
    [
      { ...own, test: arrayRecords({ query: { words } }) },
      /^data: at pages\.0 a sample of train has f32\[\], a sample of test nothing; /,
    ],
    [{ ...own, predicts: "values" }, /^data: train has the fields .*, but no inputs and labels; .* predicts: "own"$/],
    [{ ...own, classes: 3 }, /^data: classes is 3, but predicts: own has no classes/],
    [{ ...own, train: arrayRecords({ mask: words }) }, /^data: train has a field mask, but this name is reserved/],
    [
      { ...own, train: { count: 2, fields: { query: { words: 7 } } } },
      /^data: train: its field query is \{"words":7\}, but must be \{ bytes, .*; make records with arrayRecords/,
    ],
    [
      { ...own, train: { ...own.train, count: 3 } },
      /^data: train: field "pages\.0" has 8 bytes, but 3 samples take 12; give all of the data or a smaller count/,
    ],
    [{ ...own, augmentation: { cropPadding: 0, flip: true } }, /but the inputs are missing; remove it/],
  ])("is refused: %#", (data, line) => {
    expect(() => checkedData(data, "data")).toThrow(line);
    expect(() => checkedData(data, "data")).toThrow(expect.objectContaining({ kind: "user", code: "module" }));
  });
});

describe("a user's model", () => {
  const net = mlp({ sizes: [2, 3, 2] });
  const key = { dtype: "u32", shape: [2] } as unknown as Tensor;
  const batch = {
    inputs: { dtype: "f32", shape: [4, 2] },
    labels: { dtype: "i32", shape: [4] },
  } as unknown as Parameters<typeof net.loss>[2];
  /** Traces the function `name` of the model `net`, with some functions of the model replaced by `parts`. */
  const traced = (parts: object, name: "init" | "loss" | "evaluate", predicts: Prediction = "classes"): void => {
    const model = checkedModel({ ...net, ...parts }, predicts, "model", "/nowhere");
    trace(
      (own: Tensor, samples: typeof batch) => {
        const { params, state } = model.init(own);
        if (name === "init") return [];
        if (name === "evaluate") return model.evaluate(params, state, samples);
        return model.loss(params, state, samples, { train: true, key: own });
      },
      [key, batch],
    );
  };

  test("is traced unchanged if valid, and need not count correct answers for regression", () => {
    for (const name of ["init", "loss", "evaluate"] as const) traced({}, name);
    for (const predicts of ["values", "tokens"] as const)
      traced({ evaluate: () => ({ lossSum: zeros([]), count: zeros([]) }) }, "evaluate", predicts);
    traced({ metrics: { wrong: { sum: "correct", per: "count" } } }, "evaluate");
    for (const count of [() => zeros([]), () => 4])
      traced({ loss: () => [{ sum: zeros([]), count: count() }, {}] }, "loss");
  });

  test("declares how ranks shard its parameters, and an invalid declaration is refused", () => {
    const sharded = (sharding: unknown): unknown =>
      checkedModel({ ...net, sharding }, "classes", "model", "/nowhere").sharding?.("layers.0");
    expect(checkedModel(net, "classes", "model", "/nowhere").sharding).toBeUndefined();
    const shards = [
      { axis: "expert", dim: 1 },
      { axis: "tensor", dim: 0 },
    ];
    for (const right of [[], shards]) expect(sharded(() => right)).toEqual(right);
    for (const wrong of [
      "expert",
      undefined,
      shards[0],
      [{ axis: "expert" }],
      [{ axis: 3, dim: 0 }],
      [shards[0], { axis: "expert", dim: -1 }],
    ])
      expect(() => sharded(() => wrong)).toThrow(
        /^model: sharding of layers\.0 returned .*, but must return a list of/,
      );
    expect(() => sharded("expert")).toThrow(/^model: its sharding is "expert", but must be a function of paths/);
  });

  test.each<[object, "init" | "loss" | "evaluate", RegExp]>([
    [
      { init: () => ({ params: {} }) },
      "init",
      /^model: init returned .*, but must return \{ params, state \}; state is \{\} if/,
    ],
    [
      { init: () => ({ params: {}, state: {} }) },
      "init",
      /^model: init returned no parameters, so there is nothing to train; put the trainable tensors into params/,
    ],
    [
      { init: () => ({ params: [zeros([0, 4]), zeros([0])], state: {} }) },
      "init",
      /^model: init returned no parameter with an element \(0 is f32\[0, 4\]\), so there is nothing to train/,
    ],
    [{ logits: "of classes" }, "init", /^model: its logits is "of classes", but must be \{\} or \{ ignoreIndex \}/],
    [{ logits: { ignoreIndex: 0.5 } }, "init", /^model: its logits is .*, the label of rows that its loss ignores/],
    [{ init: undefined }, "init", /^model: its init is nothing, but must be a function/],
    [{ loss: () => zeros([]) }, "loss", /^model: loss returned .*, but must return \[loss, state\]/],
    [
      { init: () => ({ params: { scale: [1] }, state: {} }) },
      "init",
      /^model: init returned as "params\.scale\.0" 1, but must return a tree of tensors: .*; make it a tensor/,
    ],
    [
      { loss: async () => [zeros([]), {}] },
      "loss",
      /^model: loss returned a Promise, but must return \[loss, state\].*; the function is traced, and tracing does not wait: remove async/,
    ],
    [
      { loss: () => [zeros([4]), {}] },
      "loss",
      /^model: loss returned as loss f32\[4\], but must return .* f32 scalar .*; take the mean over the rows of the batch/,
    ],
    [
      { loss: () => [zeros([]), { moved: zeros([2]) }] },
      "loss",
      /^model: loss returned "moved", which is missing in the state that it was given; remove it/,
    ],
    [
      {
        loss: (_: unknown, state: object, { label }: { readonly label: { readonly shape: unknown } }) => [
          zeros(label.shape as []),
          state,
        ],
      },
      "loss",
      /^model: loss: TypeError: .* \(label was read from the batch, which has inputs f32\[4, 2\], labels i32\[4\]\); correct/,
    ],
    [
      { loss: () => [{ sum: zeros([]) }, {}] },
      "loss",
      /^model: loss returned as count of its loss nothing, but must return \{ sum, count, auxiliary\? \}: f32 scalar tensors/,
    ],
    [
      { loss: () => [{ sum: zeros([4]), count: zeros([]) }, {}] },
      "loss",
      /^model: loss returned as sum of its loss f32\[4\], but must return \{ sum, count/,
    ],
    [
      { loss: () => [{ sum: zeros([]), count: 0 }, {}] },
      "loss",
      /^model: loss returned as count of its loss 0, but must/,
    ],
    [
      { loss: () => [zeros([]), {}, { sum: zeros([]), count: zeros([], "i32") }] },
      "loss",
      /^model: loss returned as count of its loss i32\[\], but must/,
    ],
    [{ loss: () => [zeros([])] }, "loss", /^model: loss returned a list of 1, but must return \[loss, state\]/],
    [
      { evaluate: () => ({ lossSum: zeros([]), count: zeros([]) }) },
      "evaluate",
      /^model: evaluate returned "lossSum, count" without correct, but must return scalar .*, including correct, lossSum, count/,
    ],
    [
      { evaluate: () => ({ correct: zeros([]), lossSum: zeros([]), count: zeros([]), others: zeros([4]) }) },
      "evaluate",
      /^model: evaluate returned as "others" f32\[4\], but must return scalar tensors by name/,
    ],
    [{ metrics: [1] }, "evaluate", /^model: its metrics is a list of 1, but must be figures by name/],
    [
      { metrics: { error: { sum: "errors", per: "count" } } },
      "evaluate",
      /^model: its metrics: error uses "errors", but the sums are correct, lossSum, count; name one/,
    ],
    [
      { metrics: { loss: { sum: "lossSum", per: "count" } } },
      "evaluate",
      /^model: its metrics: the name "loss" is reserved for a built-in figure; use another name/,
    ],
    [
      { metrics: { "a b": { sum: "lossSum", per: "count" } } },
      "evaluate",
      /the name "a b" is not valid: it must begin with a letter/,
    ],
    [{ metrics: { error: "lossSum" } }, "evaluate", /error is "lossSum", but must be \{ sum, per \}/],
    [{ evaluate: () => 3 }, "evaluate", /^model: evaluate returned 3, but must return/],
    [
      {
        loss: () => {
          throw new TypeError("no such thing");
        },
      },
      "loss",
      /^model: loss: TypeError: no such thing; correct it there$/,
    ],
  ])("is refused: %#", (parts, name, line) => {
    expect(() => traced(parts, name)).toThrow(line);
    expect(() => traced(parts, name)).toThrow(expect.objectContaining({ kind: "user", code: "module" }));
  });
});
