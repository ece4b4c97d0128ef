import type { LinearCollectiveModel } from "@skein/cost-model";
import { fitCollectiveModel } from "@skein/cost-model/calibration";
import { dataAxis } from "@skein/job/node";
import { median } from "@skein/measuring";
import { factorElements, factorShape, type Layer, type LayerSide, meanStatistics, sideName } from "@skein/second-order";
import type { Curvature, PlannedCurvature } from "@skein/step/node";
import { type Backend, InvariantError, jit, NdArray, sum, type Tensor } from "@skein/tensor-core";
import { measureCollectives, type MeasuredCollective } from "./measure-collectives.ts";
import { medianSeconds } from "./median-seconds.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/** A Kronecker factor of K-FAC, with its measured time in a step. */
export interface MeasuredFactor {
  readonly path: string;
  readonly side: LayerSide;
  /** Seconds between the previous factor and this factor; 0 for the first factor, whose time is unknown. */
  readonly workSeconds: number;
}

/** Measured times of the work that K-FAC adds to a job's steps: computing, inverting, applying and sending factors. */
export interface CurvatureTimes {
  /** Factors, in the order in which they are computed. */
  readonly factors: readonly MeasuredFactor[];
  /** Seconds to invert a factor, by the factor's number of rows, ascending. */
  readonly inverses: readonly { readonly size: number; readonly seconds: number }[];
  /** Seconds per multiply-add when a gradient is multiplied by inverse factors. */
  readonly secondsPerProduct: number;
  readonly allReduce: LinearCollectiveModel;
  readonly reduce: LinearCollectiveModel;
  readonly broadcast: LinearCollectiveModel;
}

const profiledSteps = 6;
/**
 * Maximum number of factor sizes for which the inversion is timed. Times of other sizes are interpolated on a log-log
 * scale.
 */
const maxSizes = 5;

/**
 * Measures the time at which each Kronecker factor of a step is computed. For this measurement, each factor is sent
 * separately.
 */
const measureFactors = async (input: ProfileInput, curvature: Curvature): Promise<MeasuredFactor[]> => {
  const order: { readonly path: string; readonly side: LayerSide }[] = [];
  const observing: Curvature["observing"] = (key) => {
    const collector = meanStatistics({ axis: dataAxis, bucketBytes: 0 });
    order.length = 0;
    return {
      ...curvature.observing!(key),
      collector: {
        add: (layer, side, value) => {
          order.push({ path: layer.path, side });
          collector.add(layer, side, value);
        },
        finish: () => collector.finish(),
      },
    };
  };
  const { spans } = await profileSteps(input, {
    numSteps: profiledSteps,
    curvature: { ...curvature, observing, modeAt: () => "observe" },
  });
  const readyOf = (i: number): number =>
    median(
      spans.map(
        (step) =>
          startOf(step, sideName(order[i]!.path, order[i]!.side), (name) => name.endsWith(` statistics-${i}`)) -
          startOf(step, "the first factor", (name) => name.endsWith(" statistics-0")),
      ),
    );
  const ready = order.map((_, i) => readyOf(i));
  return order.map((one, i) => ({ ...one, workSeconds: i === 0 ? 0 : Math.max(0, ready[i]! - ready[i - 1]!) }));
};

/** Measures the seconds of a traced function of arrays. The function returns one number, which is read back. */
const secondsOf = async (
  fn: (...args: Tensor[]) => Tensor,
  args: readonly NdArray[],
  backend: Backend,
): Promise<number> => {
  const compiled = jit(fn, backend);
  const inputs = args.map((array) => backend.upload(array));
  try {
    return (await medianSeconds([() => compiled(...inputs)], backend))[0]!;
  } finally {
    for (const array of inputs) backend.free(array);
    compiled.release();
  }
};

/**
 * Returns a Kronecker factor for timing, which contains identity matrices, or only ones if the factor is diagonal. The
 * time does not depend on the values.
 */
const plainFactor = (shape: readonly number[]): NdArray => {
  const array = NdArray.zeros("f32", shape);
  const n = shape.at(-1)!;
  array.data.forEach((_, i) => {
    if (shape.length === 1 || Math.floor(i / n) % n === i % n) array.data[i] = 1;
  });
  return array;
};

const spread = (sizes: readonly number[]): number[] => {
  const distinct = [...new Set(sizes)].toSorted((a, b) => a - b);
  if (distinct.length <= maxSizes) return distinct;
  return Array.from(
    { length: maxSizes },
    (_, i) => distinct[Math.round((i * (distinct.length - 1)) / (maxSizes - 1))]!,
  );
};

const shapeOfSize = (size: number, { blockSize }: PlannedCurvature): readonly number[] =>
  factorShape({ kind: "linear", numInputs: size, numOutputs: size }, "input", blockSize);

const measureInverses = async (
  planned: PlannedCurvature,
  backend: Backend,
): Promise<Pick<CurvatureTimes, "inverses" | "secondsPerProduct">> => {
  const { layers, inverse } = planned;
  const inverses: { size: number; seconds: number }[] = [];
  for (const size of spread(layers.flatMap(({ numInputs, numOutputs }) => [numInputs, numOutputs]))) {
    const derive = (factor: Tensor, damping: Tensor): Tensor => {
      const { input } = inverse.derive({ input: factor, gradient: factor }, { input: size, gradient: size }, damping);
      return sum(inverse.pack(input()));
    };
    const factor = plainFactor(shapeOfSize(size, planned));
    inverses.push({ size, seconds: await secondsOf(derive, [factor, NdArray.from(0.1)], backend) });
  }
  const largest = layers.toSorted((a, b) => productsOf(b) - productsOf(a))[0];
  if (largest === undefined) throw new InvariantError("K-FAC without layers");
  const { numInputs, numOutputs } = largest;
  const secondsPerProduct =
    (await secondsOf(
      (gradient, damping) => {
        const derived = (size: number) => inverse.init(shapeOfSize(size, planned), damping);
        return sum(
          inverse.precondition(gradient, { input: derived(numInputs), gradient: derived(numOutputs) }, damping),
        );
      },
      [NdArray.zeros("f32", [numInputs, numOutputs]), NdArray.from(0.1)],
      backend,
    )) / productsOf(largest);
  return { inverses, secondsPerProduct };
};

/** Returns the number of multiply-adds when a gradient is multiplied by both inverses. */
export const productsOf = ({ numInputs, numOutputs }: Pick<Layer, "numInputs" | "numOutputs">): number =>
  numInputs * numOutputs * (numInputs + numOutputs);

/**
 * Measures the work that K-FAC adds to the steps of a job, on this machine and its links. Must be called on all ranks.
 * Measured times differ between ranks.
 */
export const measureCurvature = async (
  input: ProfileInput,
  curvature: Curvature,
  planned: PlannedCurvature,
): Promise<CurvatureTimes> => {
  const { backend, communicators } = input;
  const factors = await measureFactors(input, curvature);
  const elements = planned.layers.flatMap((layer) =>
    (["input", "gradient"] as const).map((side) => factorElements(layer, side, planned.blockSize)),
  );
  const maxBytes = 4 * elements.reduce((total, each) => total + each, 0);
  const fit = async (kind: MeasuredCollective): Promise<LinearCollectiveModel> =>
    fitCollectiveModel(await measureCollectives(kind, dataAxis, { backend, communicators, maxBytes }));
  return {
    factors,
    ...(await measureInverses(planned, backend)),
    allReduce: await fit("all-reduce"),
    reduce: await fit("reduce"),
    broadcast: await fit("broadcast"),
  };
};
