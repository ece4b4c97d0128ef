import { arrayRecords } from "@skein/data";
import { dense, initDense, mlp, type Model, rowLossModel } from "@skein/models";
import {
  argmax,
  arange,
  cast,
  crossEntropyPerRow,
  type EmptyState,
  equal,
  matmul,
  mean,
  NdArray,
  oneHot,
  add,
  splitKey,
  square,
  subtract,
  type Tensor,
} from "@skein/tensor-core";
import {
  type DataFactory,
  type DataSet,
  defineData,
  defineMetrics,
  defineModel,
  type Judged,
  type MetricsFactory,
  type ModelFactory,
} from "../src/index.ts";

// Samples other than labeled images, and models with custom losses, as users write them in modules.

const wave = (count: number, width: number, from: number): NdArray =>
  NdArray.from(
    Array.from({ length: count * width }, (_, i) => Math.sin(from + i * i)),
    [count, width],
  );

/** Returns the points of points.ts with other names: deeper in a tree, and with the class as u8. */
const renamed = (count: number, from: number): DataSet["train"] =>
  arrayRecords({
    place: [wave(count, 2, from)],
    truth: {
      of: {
        class: NdArray.from(
          Array.from({ length: count }, (_, i) => (Math.sin(from + 4 * i * i) > 0 ? 1 : 0)),
          [count],
          "u8",
        ),
      },
    },
  });

export const renamedData: DataFactory = defineData({
  create: (): DataSet => ({ train: renamed(120, 0), test: renamed(33, 1), predicts: "own" }),
});

interface Renamed {
  readonly place: readonly [Tensor];
  readonly truth: { readonly of: { readonly class: Tensor } };
  readonly mask?: Tensor;
}

/** The network of points.ts for renamed samples. */
export const renamedModel: ModelFactory = defineModel({
  create: (task): Model<ReturnType<ReturnType<typeof mlp>["init"]>["params"], EmptyState, Renamed> => {
    const inner = mlp({ sizes: [...task.spec("place.0").shape, 16, 2] });
    const labelled = ({ place: [inputs], truth, mask }: Renamed) => ({
      inputs,
      labels: cast(truth.of.class, "i32"),
      ...(mask && { mask }),
    });
    return {
      init: (key) => inner.init(key),
      apply: (params, state, batch, context) => inner.apply(params, state, batch.place[0], context),
      loss: (params, state, batch, context) => inner.loss(params, state, labelled(batch), context),
      evaluate: (params, state, batch) => inner.evaluate(params, state, labelled(batch)),
      metrics: { right: { sum: "correct", per: "count" } },
    };
  },
});

/**
 * Pairs of a query and a document. A document contains the values of its query, rotated. The field `kind` of a query is
 * an integer from 0 to 2.
 */
export const pairData: DataFactory = defineData({
  create: (): DataSet => {
    const pairs = (count: number, from: number): DataSet["train"] => {
      const vector = wave(count, 6, from);
      const numbers = vector.toNumbers();
      const kind = NdArray.from(
        Array.from({ length: count }, (_, i) => i % 3),
        [count],
        "i32",
      );
      const document = numbers.map((_, i) => numbers[i - (i % 6) + ((i + 1) % 6)]!);
      return arrayRecords({ inputs: { query: { vector, kind }, document: NdArray.from(document, [count, 6]) } });
    };
    return { train: pairs(96, 0), test: pairs(21, 3), predicts: "own" };
  },
});

interface Pairs {
  readonly inputs: {
    readonly query: { readonly vector: Tensor; readonly kind: Tensor };
    readonly document: Tensor;
  };
}

interface Embeddings {
  readonly query: Tensor;
  readonly document: Tensor;
}

/** A model of two towers whose outputs are close for a pair, and far apart for other samples of the batch. */
export const towers: ModelFactory = defineModel({
  create: (task) => {
    const [width] = task.spec("inputs.query.vector").shape as readonly [number];
    return rowLossModel({
      init: (key) => {
        const [one, two, three] = splitKey(key, 3);
        return {
          params: {
            query: initDense(one!, [width, 8]),
            kind: initDense(two!, [3, 8]),
            document: initDense(three!, [width, 8]),
          },
          state: {},
        };
      },
      apply: (params, state, { query, document }: Pairs["inputs"]): readonly [Embeddings, EmptyState] => [
        {
          query: add(dense(params.query, query.vector), dense(params.kind, oneHot(query.kind, 3))),
          document: dense(params.document, document),
        },
        state,
      ],
      losses: ({ query, document }, _: Pairs) =>
        crossEntropyPerRow(matmul(query, document, { transposeB: true }), arange(query.shape[0]!)),
      rows: ({ query, document }) => ({
        found: equal(argmax(matmul(query, document, { transposeB: true })), arange(query.shape[0]!)),
      }),
      metrics: { found: { sum: "found", per: "count" } },
    });
  },
});

/**
 * Metrics of any outputs: mean squared length of the document embeddings, and mean of the field `kind` over the
 * queries.
 */
export const lengths: MetricsFactory = defineMetrics({
  create: () => ({
    rows: ({ logits, batch }: Judged<Pairs, Embeddings>) => ({
      length: mean(square(logits.document), { dims: [1] }),
      kinds: batch.inputs.query.kind,
    }),
    metrics: { meanLength: { sum: "length", per: "count" }, kinds: { sum: "kinds", per: "count" } },
  }),
});

/** Samples without labels, for an autoencoder. */
export const plainData: DataFactory = defineData({
  create: (): DataSet => {
    const some = (count: number, from: number): DataSet["train"] => {
      const [a, b] = [wave(count, 1, from).toNumbers(), wave(count, 1, from + 9).toNumbers()];
      const numbers = a.flatMap((x, i) => [x, b[i]!, x + b[i]!, x - b[i]!, 2 * x]);
      return arrayRecords({ numbers: NdArray.from(numbers, [count, 5]) });
    };
    return { train: some(96, 0), test: some(21, 3), predicts: "own" };
  },
});

/** An autoencoder that compresses five values to two. */
export const autoencoder: ModelFactory = defineModel({
  create: (task) => {
    const [width] = task.spec("numbers").shape as readonly [number];
    return rowLossModel({
      init: (key) => {
        const [one, two] = splitKey(key, 2);
        return { params: [initDense(one!, [width, 2]), initDense(two!, [2, width])] as const, state: {} };
      },
      apply: ([inward, outward], state, { numbers }: { readonly numbers: Tensor }) => [
        dense(outward, dense(inward, numbers)),
        state,
      ],
      losses: (restored, { numbers }) => mean(square(subtract(restored, numbers)), { dims: [1] }),
    });
  },
});
