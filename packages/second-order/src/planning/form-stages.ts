import { ArgumentError, type BucketPlan } from "@skein/tensor-core";
import { checkPlacement, inverterOf, type InversePlacement, numColumns } from "../placement/inverse-placement.ts";
import { checkNumRanks } from "../placement/weights.ts";
import { sideName } from "../statistics/collect.ts";
import { type LayerSide, layerSides } from "../statistics/statistic.ts";
import { factorElements, inverseSecondsOf, type PlannedLayer, type StageTimes } from "./stage-times.ts";

/** Placement of the inversions of a K-FAC variant, and the ranks that have its factors. */
export interface FormPlacement {
  readonly placement: InversePlacement;
  /**
   * Content of a factor, and the ranks that have the factor. "mean": the mean over the samples of all ranks, on every
   * rank. "mean-at-owner": this mean, only on the ranks that invert the factor. "own": each rank that inverts the
   * factor uses only its own samples.
   */
  readonly factors: "mean" | "mean-at-owner" | "own";
}

/** Time in seconds that the stages of second-order work add to a step with a refresh, on the busiest rank. */
export interface FormStages {
  readonly factorSeconds: number;
  /**
   * Exposed time of factor communication in seconds: the time for which factors are still sent after the passes and the
   * computation of factors have ended.
   */
  readonly factorCommunicationSeconds: number;
  readonly inverseSeconds: number;
  readonly inverseCommunicationSeconds: number;
  readonly preconditionSeconds: number;
  readonly preconditionedCommunicationSeconds: number;
}

/** Layers of a K-FAC step, and the times of their operations. */
export interface StageOptions {
  readonly layers: readonly PlannedLayer[];
  readonly numRanks: number;
  readonly times: StageTimes;
  /**
   * Maximum number of rows per factor block, which changes the number of floats sent. `times` must already account for
   * blocks. Default: no blocks.
   */
  readonly blockSize?: number;
  /**
   * Factors that are sent together, by `sideName`. A bucket is sent when its last factor is computed and the network is
   * free. Default: one bucket, sent after all factors are computed.
   */
  readonly buckets?: BucketPlan;
  /**
   * Passes during which factors are sent: forward (`input`), backward (`gradient`). Use only `input` if gradients
   * occupy the network from the beginning of the backward pass. Default: both passes.
   */
  readonly hiddenBehind?: readonly LayerSide[];
  /**
   * Messages for inverses and preconditioned gradients: one per sending rank, as in `kfac`, or one per factor and
   * layer. Default: one per sending rank.
   */
  readonly messages?: "per-rank" | "per-factor";
}

/** One of the two Kronecker factors of a layer. */
interface Factor {
  readonly layer: PlannedLayer;
  readonly side: LayerSide;
  readonly name: string;
}

const sumOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0);

/** Returns the maximum of several values; 0 for an empty list. */
const maxOf = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);

/**
 * Returns the same functions, with a check of each returned time.
 *
 * @throws ArgumentError if a time is negative or not finite.
 */
const checkedTimes = (times: StageTimes): Required<StageTimes> => {
  const checked =
    <Args extends readonly unknown[]>(name: string, of: (...args: Args) => number) =>
    (...args: Args): number => {
      const seconds = of(...args);
      if (seconds >= 0 && Number.isFinite(seconds)) return seconds;
      throw new ArgumentError(
        `stages: ${name} returned ${seconds} s; times must be finite and not negative, measure again`,
      );
    };
  return {
    factorSeconds: checked("factorSeconds", times.factorSeconds),
    passSeconds: checked("passSeconds", times.passSeconds ?? (() => 0)),
    inverseSeconds: checked("inverseSeconds", times.inverseSeconds),
    preconditionSeconds: checked("preconditionSeconds", times.preconditionSeconds),
    allReduceSeconds: checked("allReduceSeconds", times.allReduceSeconds),
    reduceSeconds: checked("reduceSeconds", times.reduceSeconds),
    broadcastSeconds: checked("broadcastSeconds", times.broadcastSeconds),
  };
};

/** Returns the factors in the order in which a step computes them: A in forward, G in backward. */
export const factorsInOrder = (layers: readonly PlannedLayer[]): readonly Factor[] =>
  layerSides.flatMap((side) =>
    (side === "input" ? layers : layers.toReversed()).map((layer) => ({
      layer,
      side,
      name: sideName(layer.path, side),
    })),
  );

/** Properties of a factor that bucket planners need. */
export interface ComputedFactor {
  /** Name from `sideName`. */
  readonly name: string;
  /** Number of floats to send. */
  readonly elements: number;
  /**
   * Seconds from the previous factor until this factor is computed; for the first factor, from the beginning of the
   * forward pass.
   */
  readonly workSeconds: number;
}

/**
 * Returns one entry per factor for bucket planners, in the order in which a step computes the factors: A in the forward
 * pass, then G in the backward pass. `workSeconds` is 0 for the factors of a pass that does not overlap with
 * communication.
 */
export const computedFactors = ({
  layers,
  times: { factorSeconds, passSeconds = () => 0 },
  blockSize,
  hiddenBehind = layerSides,
}: Pick<StageOptions, "layers" | "times" | "blockSize" | "hiddenBehind">): readonly ComputedFactor[] =>
  factorsInOrder(layers).map(({ layer, side, name }) => ({
    name,
    elements: factorElements(layer, side, blockSize),
    workSeconds: hiddenBehind.includes(side) ? passSeconds(layer, side) + factorSeconds(layer, side) : 0,
  }));

/**
 * Returns the total time in seconds that each rank spends on the given computations. A computation runs on the rank
 * `rank` or, if `rank` is undefined, on all ranks of the layer's column.
 */
const sumByRank = (
  placement: InversePlacement,
  numRanks: number,
  pieces: readonly { readonly rank: number | undefined; readonly path: string; readonly seconds: number }[],
): readonly number[] => {
  const columns = numColumns(numRanks, placement.workers);
  const seconds = Array.from({ length: numRanks }, () => 0);
  for (const piece of pieces) {
    if (piece.rank !== undefined) seconds[piece.rank]! += piece.seconds;
    else
      for (let rank = placement.layers[piece.path]!.column; rank < numRanks; rank += columns)
        seconds[rank]! += piece.seconds;
  }
  return seconds;
};

/**
 * Returns the time in seconds to send a bucket of factors: one all-reduce for the factors that all ranks need, and one
 * reduce per owner.
 */
const bucketSeconds = (
  form: FormPlacement,
  factors: readonly Factor[],
  { numRanks, times, blockSize }: StageOptions,
): number => {
  const elementsOf = (some: readonly Factor[]): number =>
    sumOf(some, ({ layer, side }) => factorElements(layer, side, blockSize));
  const byOwner = Map.groupBy(factors, (factor) =>
    form.factors === "mean" ? undefined : inverterOf(form.placement, factor.layer.path, factor.side, numRanks),
  );
  return sumOf([...byOwner], ([owner, some]) =>
    owner === undefined ? times.allReduceSeconds(elementsOf(some)) : times.reduceSeconds(elementsOf(some)),
  );
};

/**
 * Returns the exposed communication time in seconds: the time for which factors are still sent after all computation
 * has ended. The transfer of bucket k starts at `start(k) = max(end(k − 1), ready(k))`. A bucket is ready when its last
 * factor is computed.
 */
const exposedSeconds = (form: FormPlacement, options: StageOptions): number => {
  const factors = factorsInOrder(options.layers);
  const indices = new Map(factors.map(({ name }, i) => [name, i]));
  let computed = 0;
  const ready = computedFactors(options).map(({ workSeconds }) => (computed += workSeconds));
  const plan = options.buckets ?? [factors.map(({ name }) => name)];
  const planned = plan.flat();
  if (new Set(planned).size !== planned.length || planned.length !== factors.length)
    throw new ArgumentError(
      `stages: the buckets name ${planned.length} factors, ${new Set(planned).size} of them distinct, but there are ${factors.length}; put each side of each layer in one bucket`,
    );
  const end = plan.reduce((free, names) => {
    const own = names.map((name) => {
      const index = indices.get(name);
      if (index !== undefined) return index;
      throw new ArgumentError(
        `stages: the buckets name ${name}, which is not a side of these layers; build the buckets from these layers`,
      );
    });
    const bucket = own.map((index) => factors[index]!);
    return Math.max(free, maxOf(own.map((index) => ready[index]!))) + bucketSeconds(form, bucket, options);
  }, 0);
  return Math.max(0, end - computed);
};

/** Returns message sizes in elements: one message per sent tensor, or one message per sender with all its tensors. */
const messagesOf = (
  pieces: readonly { readonly sender: number; readonly elements: number }[],
  messages: StageOptions["messages"],
): readonly number[] =>
  messages === "per-factor"
    ? pieces.map(({ elements }) => elements)
    : [...Map.groupBy(pieces, ({ sender }) => sender).values()].map((own) => sumOf(own, ({ elements }) => elements));

const columnOf = (placement: InversePlacement, { path }: PlannedLayer): number => placement.layers[path]!.column;

/**
 * Returns the time in seconds of the busiest rank, if each rank that inverts a factor spends `secondsOf(factor)` on the
 * factor.
 */
const busiestRank = (
  placement: InversePlacement,
  { layers, numRanks }: StageOptions,
  secondsOf: (factor: Factor) => number,
): number =>
  maxOf(
    sumByRank(
      placement,
      numRanks,
      factorsInOrder(layers).map((factor) => ({
        rank: inverterOf(placement, factor.layer.path, factor.side, numRanks),
        path: factor.layer.path,
        seconds:
          secondsOf(factor) /
          (placement.layers[factor.layer.path]![factor.side] === "shared-out" ? placement.workers : 1),
      })),
    ),
  );

/** Predicts only the times to invert factors and to send inverses; see `formStages`. */
export const inverseStages = (
  placement: InversePlacement,
  options: StageOptions,
): Pick<FormStages, "inverseSeconds" | "inverseCommunicationSeconds"> => {
  const { layers, numRanks, times, blockSize, messages } = options;
  const { workers } = placement;
  const sent = factorsInOrder(layers).flatMap((factor) => {
    const sender = workers === 1 ? undefined : inverterOf(placement, factor.layer.path, factor.side, numRanks);
    const { layer, side } = factor;
    return sender === undefined
      ? []
      : [{ sender, column: columnOf(placement, layer), elements: factorElements(layer, side, blockSize) }];
  });
  return {
    inverseSeconds: busiestRank(placement, options, ({ layer, side }) => inverseSecondsOf(times, layer, side)),
    inverseCommunicationSeconds: maxOf(
      [...Map.groupBy(sent, ({ column }) => column).values()].map((own) =>
        sumOf(messagesOf(own, messages), (elements) => times.broadcastSeconds(elements, workers)),
      ),
    ),
  };
};

/**
 * Predicts the time of each stage in a step with a refresh, given which ranks invert factors, precondition layers and
 * receive results.
 *
 *     factors         Σ t(layer, side); with "own", only the factors that a rank inverts
 *     exchange        remaining time of the factor buckets after the passes and all factors are computed
 *     inverses        max over ranks of Σ t(n), over the factors that a rank inverts
 *     exchange        max over columns of Σ broadcasts of inverses, n(n + 1)/2 floats per inverse
 *     precondition    max over ranks of Σ t(layer), over the layers of its column
 *     exchange        Σ broadcasts along a row, inputs · outputs floats per layer
 *
 * Assumes that columns send concurrently without slowing each other down, and that gradient collectives do not overlap
 * with factor collectives. With a single rank, nothing is sent.
 *
 * Cost: O(layers · ranks).
 *
 * @throws ArgumentError if the placement or the bucket plan does not match the layers, or a time is invalid. Source:
 * communication as in Pauloski et al. 2021, arXiv 2107.01739 (KAISA), and Shi, Zhang and Li 2021, arXiv 2107.06533
 * (SPD-KFAC), which defines these stages.
 */
export const formStages = (form: FormPlacement, given: StageOptions): FormStages => {
  const { layers, numRanks, messages } = given;
  checkNumRanks("formStages", numRanks);
  checkPlacement(
    form.placement,
    layers.map(({ path }) => path),
    numRanks,
  );
  const times = checkedTimes(given.times);
  const options = { ...given, times };
  const { placement } = form;
  const columns = numColumns(numRanks, placement.workers);
  return {
    factorSeconds:
      form.factors === "own"
        ? busiestRank(placement, options, ({ layer, side }) => times.factorSeconds(layer, side))
        : sumOf(factorsInOrder(layers), ({ layer, side }) => times.factorSeconds(layer, side)),
    factorCommunicationSeconds: numRanks === 1 || form.factors === "own" ? 0 : exposedSeconds(form, options),
    ...inverseStages(placement, options),
    preconditionSeconds: maxOf(
      sumByRank(
        placement,
        numRanks,
        layers.map((layer) => ({ rank: undefined, path: layer.path, seconds: times.preconditionSeconds(layer) })),
      ),
    ),
    preconditionedCommunicationSeconds:
      columns === 1
        ? 0
        : sumOf(
            messagesOf(
              layers.map((layer) => ({
                sender: columnOf(placement, layer),
                elements: layer.numInputs * layer.numOutputs,
              })),
              messages,
            ),
            (elements) => times.broadcastSeconds(elements, columns),
          ),
  };
};

/** Intervals, in steps, at which a run updates factors and refreshes inverses. */
export interface RefreshIntervals {
  /** Steps between updates of the factors. Default: 1. */
  readonly factorEvery?: number;
  /** Steps between refreshes of the inverses. Default: 1. */
  readonly inverseEvery?: number;
}

/**
 * Returns the mean time in seconds that the stages add to a step. Factors are computed every `factorEvery` steps,
 * inverses every `inverseEvery` steps, and gradients are preconditioned in each step.
 *
 * @throws ArgumentError if an interval is not a positive integer.
 */
export const meanStepSeconds = (
  stages: FormStages,
  { factorEvery = 1, inverseEvery = 1 }: RefreshIntervals = {},
): number => {
  for (const [name, every] of Object.entries({ factorEvery, inverseEvery }))
    if (!Number.isInteger(every) || every < 1)
      throw new ArgumentError(`meanStepSeconds: ${name} is ${every}; use a whole number of steps from 1`);
  return (
    (stages.factorSeconds + stages.factorCommunicationSeconds) / factorEvery +
    (stages.inverseSeconds + stages.inverseCommunicationSeconds) / inverseEvery +
    stages.preconditionSeconds +
    stages.preconditionedCommunicationSeconds
  );
};
