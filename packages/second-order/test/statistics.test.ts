import { constant, full, multiply, NdArray, type Tensor, valueAndGrad } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import {
  covarianceStatistic,
  findLayers,
  type Layer,
  meanStatistic,
  meanStatistics,
  observeLayers,
  type Statistic,
  type Statistics,
  type StatisticsCollector,
} from "../src/index.ts";
import { type TestModel, testModels } from "./models.ts";
import { partsOf, runRanks } from "./world.ts";

type Arrays = Readonly<Record<string, NdArray>>;
type Tensors = Readonly<Record<string, Tensor>>;
type Numbers = Readonly<Record<string, { readonly input?: number[]; readonly gradient?: number[] }>>;

const layersIn = ({ loss, params, batch }: TestModel): ReturnType<typeof findLayers> =>
  findLayers(valueAndGrad(loss), [params as never, batch(2, 1) as never]);

interface Observing {
  readonly statistic?: Statistic;
  /** Returns the collector for each rank's trace. */
  readonly collect?: () => StatisticsCollector;
  /** Loss scale. */
  readonly scale?: number;
  readonly draw?: number;
}

/** Returns the statistics of each rank's part of a batch, averaged over the ranks. */
const observed = (
  { loss, params }: TestModel,
  batches: readonly Arrays[],
  { statistic = meanStatistic, collect = () => meanStatistics({ axis: "data" }), scale = 1, draw }: Observing = {},
): Numbers[] => {
  const samples = Object.values(batches[0]!)[0]!.shape[0]!;
  const scaled = (own: Tensors, batch: Tensors): Tensor => multiply(loss(own, batch), scale);
  const step = (own: Tensors, batch: Tensors): Statistics =>
    observeLayers(valueAndGrad(scaled), [own, batch], {
      statistic,
      samples,
      collector: collect(),
      ...(scale !== 1 && { lossScale: full([], scale) }),
      ...(draw !== undefined && { draw: { count: draw, key: constant([1, 2], "u32") } }),
    }).statistics;
  return runRanks(
    step,
    batches.map((batch) => [params as never, batch as never] as const),
  ).map((statistics) =>
    Object.fromEntries(
      Object.entries(statistics as unknown as Record<string, Record<string, NdArray>>).map(([path, sides]) => [
        path,
        Object.fromEntries(Object.entries(sides).map(([side, array]) => [side, array.toNumbers()])),
      ]),
    ),
  );
};

/** Returns the values that a model taps for one batch, and their cotangents. */
const tapsOf = ({ loss, params }: TestModel, batch: Arrays): Record<string, { shape: number[]; data: number[] }> => {
  const step = (own: Tensors, data: Tensors): Tensors => {
    const { taps } = valueAndGrad(loss, { taps: true })(own, data);
    return Object.fromEntries(
      Object.entries(taps).map(([name, { value, cotangent }]) => [name, name.endsWith("input") ? value : cotangent]),
    );
  };
  const [result] = runRanks(step, [[params as never, batch as never]]);
  return Object.fromEntries(
    Object.entries(result as unknown as Arrays).map(([name, array]) => [
      name,
      { shape: [...array.shape], data: array.toNumbers() },
    ]),
  );
};

/** Returns the patches of one image as rows, computed from the definition of a convolution. */
const patchRows = (
  { shape: [numSamples, height, width, channels], data }: { shape: number[]; data: number[] },
  kernel: readonly [number, number],
  at: { stride: number[]; padding: number[]; dilation: number[]; size: number[] },
): number[][] => {
  const rows: number[][] = [];
  for (let n = 0; n < numSamples!; n++)
    for (let i = 0; i < at.size[0]!; i++)
      for (let j = 0; j < at.size[1]!; j++) {
        const row: number[] = [];
        for (let r = 0; r < kernel[0]; r++)
          for (let c = 0; c < kernel[1]; c++)
            for (let q = 0; q < channels!; q++) {
              const [y, x] = [
                i * at.stride[0]! - at.padding[0]! + r * at.dilation[0]!,
                j * at.stride[1]! - at.padding[1]! + c * at.dilation[1]!,
              ];
              const inside = y >= 0 && y < height! && x >= 0 && x < width!;
              row.push(inside ? data[((n * height! + y) * width! + x) * channels! + q]! : 0);
            }
        rows.push(row);
      }
  return rows;
};

/** Stride, padding and dilation of the convolutions in the test models, by layer. */
const convolutions: Record<string, { stride: number[]; padding: number[]; dilation: number[]; size: number[] }> = {
  k1: { stride: [1, 2], padding: [2, 0], dilation: [2, 1], size: [5, 3] },
  k2: { stride: [1, 1], padding: [0, 0], dilation: [2, 1], size: [3, 2] },
};

/**
 * Returns the rows that each layer reads, and the gradients of its outputs, computed with loops over the tapped values.
 */
const rowsOf = (
  layer: Layer,
  taps: ReturnType<typeof tapsOf>,
): { readonly inputs: number[][]; readonly gradients: number[][] } => {
  const [input, gradient] = [taps[`${layer.path}:input`]!, taps[`${layer.path}:gradient`]!];
  const cut = (data: readonly number[], width: number): number[][] =>
    Array.from({ length: data.length / width }, (_, i) => data.slice(i * width, (i + 1) * width));
  const width = layer.numInputs - (layer.bias === undefined ? 0 : 1);
  const inputs =
    layer.kind === "embedding"
      ? input.data.map((index) => Array.from({ length: width }, (_, i) => (i === index ? 1 : 0)))
      : layer.kind === "linear"
        ? cut(input.data, width)
        : patchRows(input, layer.kernel!, convolutions[layer.path]!);
  return {
    inputs: layer.bias === undefined ? inputs : inputs.map((row) => [...row, 1]),
    gradients: cut(gradient.data, layer.numOutputs),
  };
};

const outer = (rows: readonly number[][]): number[] => {
  const width = rows[0]!.length;
  return Array.from({ length: width * width }, (_, at) =>
    rows.reduce((sum, row) => sum + row[Math.floor(at / width)]! * row[at % width]!, 0),
  );
};
const columnSums = (rows: readonly number[][]): number[] =>
  rows[0]!.map((_, column) => rows.reduce((sum, row) => sum + row[column]!, 0));
const times = (values: readonly number[], factor: number): number[] => values.map((value) => value * factor);
const grouped = (rows: readonly number[][], samples: number): number[][] =>
  Array.from({ length: samples }, (_, sample) => {
    const each = rows.length / samples;
    return columnSums(rows.slice(sample * each, (sample + 1) * each));
  });

const isClose = (actual: readonly number[], expected: readonly number[]): boolean => {
  const size = Math.max(1e-30, ...expected.map(Math.abs));
  return actual.length === expected.length && actual.every((value, i) => Math.abs(value - expected[i]!) < 2e-6 * size);
};
const expectClose = (actual: readonly number[], expected: readonly number[]): void => {
  if (!isClose(actual, expected)) expect(actual).toEqual(expected);
};

/** Concatenates batches. */
const joined = (batches: readonly Arrays[]): Arrays =>
  Object.fromEntries(
    Object.entries(batches[0]!).map(([name, { shape, dtype }]) => [
      name,
      NdArray.from(
        batches.flatMap((batch) => batch[name]!.toNumbers()),
        [batches.length * shape[0]!, ...shape.slice(1)],
        dtype,
      ),
    ]),
  );

describe.each(testModels)("$name", (model) => {
  const samples = 4;
  const batch = model.batch(samples, 10);

  test("finds its layers, and lists the other weights with a reason", () => {
    const { layers, firstOrder } = layersIn(model);
    expect(Object.fromEntries(layers.map(({ path, bias }) => [path, bias]))).toEqual(model.layers);
    expect(firstOrder.map(({ path }) => path).sort()).toEqual(Object.keys(model.firstOrder).sort());
    for (const { path, why } of firstOrder) expect(why).toMatch(model.firstOrder[path]!);
  });

  test("means and covariances equal those of the rows that layers read, and of gradients of each sample's loss", () => {
    const { layers } = layersIn(model);
    const taps = tapsOf(model, batch);
    const [means] = observed(model, [batch], {});
    const [expanded] = observed(model, [batch], { statistic: covarianceStatistic() });
    const reducing = (layer: Layer): boolean => layer.kind !== "embedding";
    const [reduced] = observed(model, [batch], { statistic: covarianceStatistic({ positions: "reduce" }) });
    for (const layer of layers) {
      const { inputs, gradients } = rowsOf(layer, taps);
      const own = means![layer.path]!;
      expectClose(own.input!, times(columnSums(inputs), 1 / inputs.length));
      expectClose(own.gradient!, times(columnSums(gradients), samples / gradients.length));
      const width = layer.numInputs;
      const moment = times(outer(inputs), 1 / inputs.length);
      const diagonal = moment.filter((_, at) => Math.floor(at / width) === at % width);
      expectClose(expanded![layer.path]!.input!, layer.kind === "embedding" ? diagonal : moment);
      expectClose(expanded![layer.path]!.gradient!, times(outer(gradients), samples));
      expectClose(reduced![layer.path]!.gradient!, times(outer(grouped(gradients, samples)), samples));
      if (reducing(layer)) {
        const rows = grouped(inputs, samples).map((row) => times(row, samples / inputs.length));
        expectClose(reduced![layer.path]!.input!, times(outer(rows), 1 / samples));
      }
    }
  });

  test.each([2, 4])("%d ranks collect the statistics of one rank with the same samples", (numRanks) => {
    for (const statistic of [meanStatistic, covarianceStatistic(), covarianceStatistic({ positions: "reduce" })]) {
      const [alone] = observed(model, [batch], { statistic });
      for (const bucketBytes of [1, 2 ** 20]) {
        const collect = (): StatisticsCollector => meanStatistics({ axis: "data", bucketBytes });
        for (const rank of observed(model, partsOf(batch, numRanks), { statistic, collect }))
          for (const [path, sides] of Object.entries(alone!))
            for (const side of ["input", "gradient"] as const) expectClose(rank[path]![side]!, sides[side]!);
      }
    }
  });

  test("the loss scale does not affect the statistics", () => {
    for (const statistic of [meanStatistic, covarianceStatistic()]) {
      const [plain] = observed(model, [batch], { statistic });
      const [undone] = observed(model, [batch], { statistic, scale: 1024 });
      for (const [path, sides] of Object.entries(plain!))
        for (const side of ["input", "gradient"] as const) expectClose(undone![path]![side]!, sides[side]!);
    }
  });

  test("drawn samples are distinct samples of the batch", () => {
    for (const statistic of [meanStatistic, covarianceStatistic(), covarianceStatistic({ positions: "reduce" })]) {
      const all = observed(model, [batch], { statistic })[0]!;
      const everyone = observed(model, [batch], { statistic, draw: samples })[0]!;
      const some = observed(model, [batch], { statistic, draw: 2 })[0]!;
      // The order of drawn samples does not change the statistics. A draw of two samples gives one of the six pairs.
      const pairs = [
        [0, 1],
        [0, 2],
        [0, 3],
        [1, 2],
        [1, 3],
        [2, 3],
      ].map(([a, b]) => {
        const rows = partsOf(batch, samples);
        return observed(model, [joined([rows[a!]!, rows[b!]!])], { statistic })[0]!;
      });
      for (const [path, sides] of Object.entries(all)) {
        for (const side of ["input", "gradient"] as const) {
          expectClose(everyone[path]![side]!, sides[side]!);
          expect(pairs.some((pair) => isClose(some[path]![side]!, pair[path]![side]!))).toBe(true);
        }
      }
    }
  });
});
