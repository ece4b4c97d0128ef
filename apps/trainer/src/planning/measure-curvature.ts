import { fitCollectiveModel, type LinearCollectiveModel, median } from "@skein/cost-model";
import { factorElements, factorShape, type Layer, type LayerSide, meanStatistics, sideName } from "@skein/second-order";
import { type Backend, InvariantError, jit, NdArray, sum, type Tensor } from "@skein/tensor-core";
import type { Curvature, PlannedCurvature } from "../building/curvature.ts";
import { dataAxis } from "../job/mesh.ts";
import { type MeasuredCollective, measureCollectives } from "./measure-collectives.ts";
import { medianSeconds } from "./median-seconds.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/** One factor as a step computes it. */
export interface MeasuredFactor {
  readonly path: string;
  readonly side: LayerSide;
  /** From the factor before until this one is computed; of the first one it is not known, and 0. */
  readonly workSeconds: number;
}

/** What of a job's second-order work was timed. */
export interface CurvatureTimes {
  /** In the order in which they are computed. */
  readonly factors: readonly MeasuredFactor[];
  /** To invert a factor of so many rows, ascending. */
  readonly inverses: readonly { readonly size: number; readonly seconds: number }[];
  /** To multiply a gradient by inverses: seconds per multiply-add. */
  readonly secondsPerProduct: number;
  readonly allReduce: LinearCollectiveModel;
  readonly reduce: LinearCollectiveModel;
  readonly broadcast: LinearCollectiveModel;
}

const profiledSteps = 6;
/** Sizes of factors that are timed; between them the logarithm of the time is taken to be a line. */
const mostSizes = 5;

/** When each factor of a step is computed: each is sent by itself, as soon as it is there. */
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

/** Seconds of a traced function of arrays, whose result is one number that is read back. */
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

/** Identities, or diagonals of ones: as good as any factor to be timed with. */
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
  if (distinct.length <= mostSizes) return distinct;
  return Array.from(
    { length: mostSizes },
    (_, i) => distinct[Math.round((i * (distinct.length - 1)) / (mostSizes - 1))]!,
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

/** Multiply-adds of a gradient by both inverses. */
export const productsOf = ({ numInputs, numOutputs }: Pick<Layer, "numInputs" | "numOutputs">): number =>
  numInputs * numOutputs * (numInputs + numOutputs);

/**
 * Time what K-FAC adds to the steps of a job, on this machine and over these links. All ranks call it together; their
 * figures differ.
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
  const mostBytes = 4 * elements.reduce((total, each) => total + each, 0);
  const fit = async (kind: MeasuredCollective): Promise<LinearCollectiveModel> =>
    fitCollectiveModel(await measureCollectives(kind, dataAxis, { backend, communicators, mostBytes }));
  return {
    factors,
    ...(await measureInverses(planned, backend)),
    allReduce: await fit("all-reduce"),
    reduce: await fit("reduce"),
    broadcast: await fit("broadcast"),
  };
};
