import type { WorldConnection } from "@skein/collectives/node";
import {
  add,
  type DType,
  multiply,
  NdArray,
  type Shape,
  sum,
  type Tensor,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import {
  byChoice,
  capacityByMaximum,
  type CapacityRule,
  denseDispatcher,
  duplicateFreeDispatcher,
  type ExpertShards,
  geluExperts,
  hierarchicalDispatcher,
  type LevelMetadata,
  moeLayer,
  raggedDispatcher,
  splitAfterGate,
  splitBeforeGate,
  swigluExperts,
  type TokenDispatcher,
  withoutSplit,
} from "../../src/index.ts";
import { moveExperts } from "../../src/placement.ts";
import { gateRows } from "../gate-rows.ts";
import { type Levels, levelsOf } from "../world.ts";

// Work of the ranks on threads, and of the reference afterwards. Both look up walks in the table, because functions
// cannot be posted.

/** Start parameters of a rank's thread. */
export interface RankData {
  /** Index of the world. */
  readonly number: number;
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
}

/** An array in the format in which it is posted to another thread. */
export interface PostedArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly values: readonly number[];
}

export interface PostedStep {
  /** Results in flattening order. */
  readonly results: readonly PostedArray[];
  /** Number of bytes sent in one forward pass, counted by the communicator. */
  readonly bytesSent: number;
}

/** Results of a rank for all test steps and all moves of experts. */
export interface PostedRun {
  readonly steps: readonly PostedStep[];
  readonly moves: readonly PostedStep[];
}

export type Answer = PostedRun | { readonly error: string };

export const toPosted = (array: NdArray): PostedArray => ({
  dtype: array.dtype,
  shape: array.shape,
  values: array.toNumbers(),
});

export const sizes = { width: 5, numTokens: 12 } as const;
const { width, numTokens } = sizes;

/** Slots per expert with the dense dispatcher: half of the tokens, so that some are dropped. */
export const denseSlots = 6;
const sixSlots: CapacityRule = () => ({ slots: denseSlots, overflow: "drop", dropOrder: byChoice });

const mlp = { width, hidden: 8, deviation: 0.5, outputDeviation: 0.5 };

/** Dispatch strategy of a test step. */
export type Way = "dense" | "ragged" | "hierarchical" | "duplicate-free" | "shards";

export interface LayerUse {
  /**
   * Whether loads are summed over all ranks ("all"), which needs communication, or only over this rank's tokens
   * ("own").
   */
  readonly counts: "own" | "all";
  /** Called with the dispatcher's metadata while the step is traced. */
  readonly seeMetadata?: (metadata: unknown) => void;
}

export interface Walk {
  readonly name: string;
  readonly way: Way;
  readonly numExperts: number;
  /**
   * Returns the lowest rank that has the same tokens and key as a rank. Absent: each rank has different tokens and a
   * different key.
   */
  readonly sourceOf?: (rank: number) => number;
  /** Number of bytes that one rank sends in forward. Absent: the formula of the dispatcher applies. */
  readonly bytesSent?: number;
  readonly layer: (use: LayerUse) => ReturnType<typeof moeLayer<unknown, unknown, unknown>>;
}

/** Positions of the experts before and after a move. */
type Move = readonly [before: readonly number[], after: readonly number[]];

export interface World {
  readonly worldSize: number;
  readonly levels: Levels;
  readonly walks: readonly Walk[];
  readonly moves: readonly Move[];
}

const withObserver = (dispatcher: TokenDispatcher, see: LayerUse["seeMetadata"] = () => {}): TokenDispatcher => ({
  ...dispatcher,
  dispatch: (x_TD, order, ownSizes) => {
    const dispatched = dispatcher.dispatch(x_TD, order, ownSizes);
    see(dispatched.metadata);
    return dispatched;
  },
});

/**
 * Test steps for every gate, with the dense and with the ragged dispatcher. The ragged dispatcher uses a permuted
 * expert placement.
 */
const flatWalks: readonly Walk[] = gateRows.flatMap(({ name, gate }) =>
  [false, true].map(
    (ragged): Walk => ({
      name: `${name}, ${ragged ? "ragged" : "dense"}`,
      way: ragged ? "ragged" : "dense",
      numExperts: 6,
      layer: ({ counts }) =>
        moeLayer<unknown, unknown, unknown>({
          gate: gate({ width, numExperts: 6 }),
          experts: (ragged ? swigluExperts(mlp) : geluExperts(mlp)) as never,
          capacity: ragged ? capacityByMaximum() : sixSlots,
          dispatcher: ragged ? raggedDispatcher() : denseDispatcher(),
          ...(ragged && { placement: [5, 0, 3, 1, 4, 2] }),
          ...(counts === "own" && { tokenAxes: [] }),
        }),
    }),
  ),
);

const levels = levelsOf([2, 2]);

/**
 * Test steps over two levels with both level dispatchers, for gates with one choice, several choices and all choices,
 * for expert choice, and for soft routing.
 */
const levelWalks: readonly Walk[] = gateRows
  .filter(({ name }) => /^(switchGate|noisyTopKGate of all experts|sigmoidGate|expertChoiceGate|softGate)$/.test(name))
  .flatMap(({ name, gate }, i) =>
    [hierarchicalDispatcher, duplicateFreeDispatcher].map((make, j): Walk => {
      const way = j === 0 ? "hierarchical" : "duplicate-free";
      const chunks = 1 + ((i + j) % 2);
      return {
        name: `${name}, ${way}, ${chunks} chunks`,
        way,
        numExperts: 8,
        layer: ({ counts, seeMetadata }) =>
          moeLayer<unknown, unknown, unknown>({
            gate: gate({ width, numExperts: 8 }),
            experts: swigluExperts(mlp) as never,
            capacity: i % 2 === 0 ? capacityByMaximum() : sixSlots,
            dispatcher: withObserver(make({ axes: Object.keys(levels) }), seeMetadata),
            chunks,
            ...(counts === "own" && { tokenAxes: [] }),
          }),
      };
    }),
  );

/**
 * Test steps with sharded experts: experts are distributed over two ranks along the outer level, and each expert is
 * sharded over two ranks along the inner level. Covers each sharding schedule with equal numbers of slots.
 */
const shardWalks: readonly Walk[] = (() => {
  const [numRanks, numShards, numExperts] = [2, 2, 4];
  const all = numRanks * numShards;
  const axes = { axis: "level-1", productAxis: "expert" };
  /** Returns the number of bytes that a rank sends in an exchange of `rows` rows among `ranks` ranks. */
  const exchanged = (rows: number, ranks: number): number => (4 * width * rows * (ranks - 1)) / ranks;
  const slots = numExperts * denseSlots;
  const gathered = exchanged(numShards * numTokens, numShards);
  const rowsWithoutSplit = numShards * slots;
  const walk = (gateName: string, name: string, shards: ExpertShards, bytesSent: number): Walk => ({
    name: `${gateName}, ${name}`,
    way: "shards",
    numExperts,
    sourceOf: (rank) => rank - (rank % numShards),
    bytesSent,
    layer: ({ counts }) =>
      moeLayer<unknown, unknown, unknown>({
        gate: gateRows.find((row) => row.name === gateName)!.gate({ width, numExperts }),
        experts: swigluExperts(mlp) as never,
        capacity: sixSlots,
        chunks: 2,
        axis: "level-0",
        shards,
        ...(counts === "own" && { tokenAxes: [] }),
      }),
  });
  return [
    walk(
      "noisyTopKGate",
      "split before the gate",
      splitBeforeGate(axes),
      2 * exchanged(numShards * slots, all) + gathered / numShards,
    ),
    walk(
      "noisyTopKGate",
      "split after the gate",
      splitAfterGate(axes),
      2 * exchanged(slots, all) + exchanged(slots, numShards),
    ),
    walk(
      "switchGate",
      "without a split",
      withoutSplit(axes),
      gathered + 2 * exchanged(rowsWithoutSplit, numRanks) + 2 * exchanged(rowsWithoutSplit, numShards),
    ),
  ];
})();

/**
 * Positions of six experts before and after a move: no expert moves, all experts move, two experts change ranks, or two
 * experts swap positions on one rank.
 */
const moves: readonly Move[] = [
  [
    [0, 1, 2, 3, 4, 5],
    [0, 1, 2, 3, 4, 5],
  ],
  [
    [5, 0, 3, 1, 4, 2],
    [1, 2, 5, 3, 0, 4],
  ],
  [
    [5, 0, 3, 1, 4, 2],
    [2, 0, 3, 1, 4, 5],
  ],
  [
    [0, 1, 2, 3, 4, 5],
    [1, 0, 2, 3, 4, 5],
  ],
];

export const worlds: readonly World[] = [
  { worldSize: 3, levels: {}, walks: flatWalks, moves },
  { worldSize: 4, levels, walks: [...levelWalks, ...shardWalks], moves: [] },
];

/**
 * Returns rows of a rank's experts with values that identify the expert: three f32 numbers and one integer per expert.
 */
export const rowsOf = (
  placeOf: readonly number[],
  rank: number,
  numRanks: number,
): { readonly weight: NdArray; readonly count: NdArray } => {
  const own = placeOf.length / numRanks;
  const experts = Array.from({ length: own }, (_, i) => placeOf.indexOf(rank * own + i));
  return {
    weight: NdArray.from(
      experts.flatMap((expert) => [expert, -0, expert / 7]),
      [own, 3],
      "f32",
    ),
    count: NdArray.from(experts, [own], "i32"),
  };
};

export const placesArray = (places: readonly number[]): NdArray => NdArray.from([...places], [places.length], "i32");

interface Rows {
  readonly weight: Tensor;
  readonly count: Tensor;
}

export const moveOf = (rows: Rows, before_E: Tensor, after_E: Tensor): Rows => moveExperts(rows, { before_E, after_E });

type Traced<Count extends 3 | 4> = (
  ...args: Count extends 3
    ? [key: Tensor, stepKey: Tensor, x: Tensor]
    : [key: Tensor, stepKey: Tensor, x: Tensor, cotangent: Tensor]
) => unknown;

/** Returns a traced step with the output, state, metrics and all gradients. */
export const stepOf = ({ layer }: Walk): Traced<4> => {
  const own = layer({ counts: "all" });
  return (key, stepKey, x, cotangent) => {
    const { params, state } = own.init(key);
    const loss = ({ held, tokens }: { readonly held: typeof params; readonly tokens: Tensor }) => {
      const [y, next, report] = own.apply(held, state, tokens, { train: true, key: stepKey });
      return [add(sum(multiply(y, cotangent)), report.loss), [y, next, report]] as const;
    };
    return valueAndGradWithAux(loss)({ held: params, tokens: x });
  };
};

/** Returns a traced forward pass without counts over ranks, with the number of rows of each expert and of each hop. */
export const forwardOf = ({ layer }: Walk): Traced<3> => {
  const hops: Tensor[] = [];
  const own = layer({
    counts: "own",
    seeMetadata: (metadata) =>
      hops.push(...(metadata as LevelMetadata).flatMap((chunk) => chunk.hops.map(({ leaving_g }) => leaving_g))),
  });
  return (key, stepKey, x) => {
    hops.length = 0;
    const { params, state } = own.init(key);
    const [y, , { figures }] = own.apply(params, state, x, { train: true, key: stepKey });
    return { y, load_E: figures.load_E, hops: [...hops] };
  };
};

/** Returns the arguments of one rank: keys, tokens and cotangents. Two tokens are zero, so their scores tie. */
export const argumentsOf = (
  { sourceOf = (own) => own }: Walk,
  ofRank: number,
): readonly [NdArray, NdArray, NdArray, NdArray] => {
  const rank = sourceOf(ofRank);
  const wave = (seed: number): NdArray =>
    NdArray.from(
      Array.from({ length: numTokens * width }, (_, i) => (i < 2 * width ? 0 : 3 * Math.sin(seed * (i + 1) + rank))),
      [numTokens, width],
      "f32",
    );
  return [NdArray.from([3, 7], [2], "u32"), NdArray.from([50, rank], [2], "u32"), wave(1.7), wave(0.9)];
};
