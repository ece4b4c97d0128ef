import { ArgumentError, type BucketPlan } from "@skein/tensor-core";
import { checkPlacement, inverterOf, type InversePlacement, numColumns } from "../placement/inverse-placement.ts";
import { checkNumRanks } from "../placement/weights.ts";
import { sideName } from "../statistics/collect.ts";
import { type LayerSide, layerSides } from "../statistics/statistic.ts";
import { factorElements, inverseSecondsOf, type PlannedLayer, type StageTimes } from "./stage-times.ts";

/** Who has which factors and inverses. */
export interface FormPlacement {
  readonly placement: InversePlacement;
  /**
   * Of which samples a factor is, and where it is known: the mean over all ranks, on each rank or only on the one that
   * inverts it, or those of that rank alone.
   */
  readonly factors: "mean" | "mean-at-owner" | "own";
}

/** What a step with a refresh takes beside both passes and the exchange of gradients, of the rank with most to do. */
export interface FormStages {
  readonly factorSeconds: number;
  /** What is left of it when the passes and the computing of factors are over. */
  readonly factorCommunicationSeconds: number;
  readonly inverseSeconds: number;
  readonly inverseCommunicationSeconds: number;
  readonly preconditionSeconds: number;
  readonly preconditionedCommunicationSeconds: number;
}

/** The layers of a step of K-FAC, and what each of its stages takes. */
export interface StageOptions {
  readonly layers: readonly PlannedLayer[];
  readonly numRanks: number;
  readonly times: StageTimes;
  /** Most rows of a block of a factor, which changes what travels; times know it by themselves. Default: all. */
  readonly blockSize?: number;
  /**
   * Which factors travel together, by `sideName`; a bucket leaves when its last one is computed and the network is
   * free. Default: all in one, after all are computed.
   */
  readonly buckets?: BucketPlan;
  /**
   * Passes behind which factors travel: forward (`input`), backward (`gradient`). Where gradients hold the network from
   * the begin of the backward pass on, the forward pass alone. Default: both.
   */
  readonly hiddenBehind?: readonly LayerSide[];
  /**
   * Inverses and preconditioned gradients in one message for each rank that sends some, as `kfac` does, or one for each
   * factor and layer. Default: one for each rank.
   */
  readonly messages?: "per-rank" | "per-factor";
}

/** One factor of one layer. */
interface Factor {
  readonly layer: PlannedLayer;
  readonly side: LayerSide;
  readonly name: string;
}

const sumOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0);

/** The greatest of several sums; 0 of none. */
const mostOf = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);

/** @throws ArgumentError for a time that is negative or not finite. */
const checkedTimes = (times: StageTimes): Required<StageTimes> => {
  const checked =
    <Args extends readonly unknown[]>(name: string, of: (...args: Args) => number) =>
    (...args: Args): number => {
      const seconds = of(...args);
      if (seconds >= 0 && Number.isFinite(seconds)) return seconds;
      throw new ArgumentError(`stages: ${name} says ${seconds} s; times are finite and not negative; measure it anew`);
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

/** Factors in the order in which a step computes them: A forward, G backward. */
export const factorsInOrder = (layers: readonly PlannedLayer[]): readonly Factor[] =>
  layerSides.flatMap((side) =>
    (side === "input" ? layers : layers.toReversed()).map((layer) => ({
      layer,
      side,
      name: sideName(layer.path, side),
    })),
  );

/** A factor as planners of buckets take it. */
export interface ComputedFactor {
  /** `sideName`. */
  readonly name: string;
  /** Floats that travel. */
  readonly elements: number;
  /** From the factor before, or the begin of the forward pass, until this one is computed. */
  readonly workSeconds: number;
}

/**
 * What of factors a plan of their buckets rests on, in the order in which a step computes them: A forward, G backward.
 * A pass behind which nothing is hidden is one of no length.
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

/** Sums by rank, where a piece is done by one rank, or by all of a column. */
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

/** A bucket of factors: one all-reduce of those that all need, or a reduce for each rank that needs some. */
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

/** What travels when all is computed: start(k) = max(end(k − 1), ready(k)), each bucket ready with its last factor. */
const exposedSeconds = (form: FormPlacement, options: StageOptions): number => {
  const factors = factorsInOrder(options.layers);
  const places = new Map(factors.map(({ name }, i) => [name, i]));
  let computed = 0;
  const ready = computedFactors(options).map(({ workSeconds }) => (computed += workSeconds));
  const plan = options.buckets ?? [factors.map(({ name }) => name)];
  const planned = plan.flat();
  if (new Set(planned).size !== planned.length || planned.length !== factors.length)
    throw new ArgumentError(
      `stages: the buckets name ${planned.length} factors, ${new Set(planned).size} different ones, of ${factors.length}; put each side of each layer in one`,
    );
  const end = plan.reduce((free, names) => {
    const own = names.map((name) => {
      const place = places.get(name);
      if (place !== undefined) return place;
      throw new ArgumentError(`stages: the buckets name ${name}, a side of no layer; make them of these layers`);
    });
    const bucket = own.map((place) => factors[place]!);
    return Math.max(free, mostOf(own.map((place) => ready[place]!))) + bucketSeconds(form, bucket, options);
  }, 0);
  return Math.max(0, end - computed);
};

/** Elements that ranks send, as messages: one for each piece, or one for each sender. */
const messagesOf = (
  pieces: readonly { readonly sender: number; readonly elements: number }[],
  messages: StageOptions["messages"],
): readonly number[] =>
  messages === "per-factor"
    ? pieces.map(({ elements }) => elements)
    : [...Map.groupBy(pieces, ({ sender }) => sender).values()].map((own) => sumOf(own, ({ elements }) => elements));

const columnOf = (placement: InversePlacement, { path }: PlannedLayer): number => placement.layers[path]!.column;

/** What the rank takes that has the most to do, of what is done where factors are inverted. */
const busiestRank = (
  placement: InversePlacement,
  { layers, numRanks }: StageOptions,
  secondsOf: (factor: Factor) => number,
): number =>
  mostOf(
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

/** The two stages of inverses by themselves; see `formStages`. */
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
    inverseCommunicationSeconds: mostOf(
      [...Map.groupBy(sent, ({ column }) => column).values()].map((own) =>
        sumOf(messagesOf(own, messages), (elements) => times.broadcastSeconds(elements, workers)),
      ),
    ),
  };
};

/**
 * Predict what a step with a refresh takes in each stage, by who inverts, preconditions and needs what.
 *
 *     factors         Σ t(layer, side); with factors of its own a rank computes those that it inverts
 *     their exchange  what of the buckets is on its way when the passes and all factors are computed
 *     inverses        max over ranks of Σ t(n) of what a rank inverts
 *     their exchange  max over columns of Σ broadcasts of their inverses, n(n + 1)/2 floats each
 *     precondition    max over ranks of Σ t(layer) of the layers of its column
 *     its exchange    Σ broadcasts along a row, inputs · outputs floats per layer
 *
 * Columns send at once and are taken not to slow each other down. One rank sends nothing. Collectives of gradients are
 * taken not to meet those of factors.
 *
 * Cost: O(layers · ranks).
 *
 * @throws ArgumentError for a placement or a plan that does not fit the layers, and times that are none.
 * Source: who sends what as in Pauloski et al. 2021, arXiv 2107.01739 (KAISA), and Shi, Zhang and Li 2021, arXiv
 * 2107.06533 (SPD-KFAC), whose stages these are.
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
    preconditionSeconds: mostOf(
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

/** How often a run does what. */
export interface RefreshIntervals {
  /** Steps from one look at the factors to the next. Default: 1. */
  readonly factorEvery?: number;
  /** Steps from one refresh of the inverses to the next. Default: 1. */
  readonly inverseEvery?: number;
}

/**
 * What the stages add to a step in the mean: factors every so many steps, inverses every so many, the rest in each.
 *
 * @throws ArgumentError for intervals that are no whole numbers from 1.
 */
export const meanStepSeconds = (
  stages: FormStages,
  { factorEvery = 1, inverseEvery = 1 }: RefreshIntervals = {},
): number => {
  for (const [name, every] of Object.entries({ factorEvery, inverseEvery }))
    if (!Number.isInteger(every) || every < 1)
      throw new ArgumentError(`meanStepSeconds: ${name} is ${every}; it counts steps, in whole numbers from 1`);
  return (
    (stages.factorSeconds + stages.factorCommunicationSeconds) / factorEvery +
    (stages.inverseSeconds + stages.inverseCommunicationSeconds) / inverseEvery +
    stages.preconditionSeconds +
    stages.preconditionedCommunicationSeconds
  );
};
