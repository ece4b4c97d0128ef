import { meshPartition } from "@skein/collectives";
import {
  add,
  allGather,
  allReduce,
  broadcastFromRoot,
  reduceToRoot,
  cast,
  concat,
  type Graph,
  matmul,
  maximum,
  minimum,
  NdArray,
  reshape,
  sendReceive,
  slice,
  type Tensor,
  trace,
} from "@skein/tensor-core";
import type { ReferenceArray } from "@skein/tensor-core/backend";
import fc from "fast-check";

// Programs of ranks that trace the same collectives and compute different values between them: values that only one
// rank needs before a collective, results of earlier collectives that only one rank adds, and messages between two
// ranks.

export const worldSize: number = 4;
/** Sizes of the mesh. Each rank is in three groups: all ranks, its row, its column. */
const mesh = { row: 2, column: 2 };
export const partitions: Record<"row" | "column", number[][]> = {
  row: meshPartition(mesh, "row"),
  column: meshPartition(mesh, "column"),
};
const sizes = { all: 4, row: 2, column: 2 };
const elements = 8;

type Axis = keyof typeof sizes;

/** Computation that only one rank runs before a collective. */
interface OwnWork {
  /** Number of consecutive matrix products. */
  readonly products: number;
  /** Indices of earlier values that the rank adds to the operand. */
  readonly mixes: readonly number[];
}

/** Deviations of one rank, after which its collectives no longer match those of the other ranks. */
export const mutations = ["drop", "double", "kind", "axis", "size", "dtype", "priority", "silence", "fail"] as const;

interface Mutation {
  readonly rank: number;
  readonly kind: (typeof mutations)[number];
}

interface Call {
  readonly kind: "sum" | "largest" | "gather" | "broadcast" | "reduce";
  readonly axis: Axis;
  readonly priority: number;
  /** Index of the value that is the operand on all ranks. */
  readonly source: number;
  /** Additional computation of each rank, by rank. */
  readonly own: readonly OwnWork[];
  readonly mutation?: Mutation;
  /** Message between two ranks before the call. Absent: no message. */
  readonly message?:
    | { readonly from: number; readonly to: number; readonly source: number; readonly priority: number }
    | undefined;
}

export type Program = readonly Call[];

const callAt = (i: number): fc.Arbitrary<Call> => {
  const earlier = fc.nat({ max: i });
  const priority = fc.constantFrom(0, 0, 0, 2);
  return fc.record({
    kind: fc.constantFrom("sum", "largest", "gather", "broadcast", "reduce"),
    axis: fc.constantFrom<Axis>("all", "row", "column"),
    priority,
    source: earlier,
    own: fc.array(fc.record({ products: fc.constantFrom(0, 0, 1, 5), mixes: fc.array(earlier, { maxLength: 1 }) }), {
      minLength: worldSize,
      maxLength: worldSize,
    }),
    message: fc.option(
      fc
        .record({
          from: fc.nat({ max: worldSize - 1 }),
          step: fc.integer({ min: 1, max: worldSize - 1 }),
          source: earlier,
          priority,
        })
        .map(({ from, step, ...rest }) => ({ from, to: (from + step) % worldSize, ...rest })),
      { nil: undefined },
    ),
  });
};

export const programs: fc.Arbitrary<Program> = fc
  .integer({ min: 1, max: 7 })
  .chain((length) => fc.tuple(...Array.from({ length }, (_, i) => callAt(i))));

/**
 * Generates programs with identical collectives. Each rank first starts the collective whose operand takes the least
 * computation on that rank; only the position in the trace distinguishes the collectives.
 */
export const twins: fc.Arbitrary<Program> = fc
  .tuple(
    fc.constantFrom<Call["kind"]>("sum", "largest", "gather", "broadcast", "reduce"),
    fc.constantFrom<Axis>("all", "row", "column"),
    fc.array(fc.array(fc.constantFrom(0, 5), { minLength: worldSize, maxLength: worldSize }), {
      minLength: 2,
      maxLength: 3,
    }),
  )
  .map(([kind, axis, products]) =>
    products.map((ofRanks) => ({
      kind,
      axis,
      priority: 0,
      source: 0,
      // The added values make the operands of the calls different.
      own: ofRanks.map((count) => ({ products: count, mixes: count === 0 ? [] : [0] })),
    })),
  );

/** Generates programs in which one rank deviates in one collective. */
export const mutants: fc.Arbitrary<Program> = fc
  .record({
    program: programs,
    at: fc.nat(),
    mutation: fc.record({ rank: fc.nat({ max: worldSize - 1 }), kind: fc.constantFrom(...mutations) }),
  })
  .map(({ program, at, mutation }) =>
    program.map((call, i) => (i === at % program.length ? { ...call, mutation } : call)),
  );

/** Clamps a tensor to small integers, −99 to 99, so that sums are exact. */
const bounded = (x: Tensor): Tensor => maximum(minimum(x, 99), -99);

const collective = ({ kind, axis, priority }: Call, x: Tensor): Tensor => {
  switch (kind) {
    case "sum":
      return allReduce(x, axis, "sum", { priority });
    case "largest":
      return allReduce(x, axis, "max", { priority });
    case "gather":
      return slice(allGather(x, axis, { priority }), [(sizes[axis] - 1) * elements], [sizes[axis] * elements]);
    case "broadcast":
      return broadcastFromRoot(x, axis, sizes[axis] - 1, { priority });
    case "reduce":
      return reduceToRoot(x, axis, sizes[axis] - 1, { priority });
  }
};

const otherKinds = {
  sum: "largest",
  largest: "gather",
  gather: "broadcast",
  broadcast: "reduce",
  reduce: "sum",
} as const;
const otherAxes = { all: "row", row: "column", column: "all" } as const;

/** Traces the operation of a deviating rank in place of a collective that all other ranks trace unchanged. */
const mutated = (call: Call, kind: Mutation["kind"], isEnd: boolean, x: Tensor): Tensor => {
  switch (kind) {
    case "drop":
      return x;
    case "silence":
      return isEnd ? collective(call, x) : x;
    case "double":
      return collective(call, bounded(collective(call, x)));
    case "kind":
      return collective({ ...call, kind: otherKinds[call.kind] }, x);
    case "axis":
      return collective({ ...call, axis: otherAxes[call.axis] }, x);
    case "size":
      return collective(call, concat([x, x], { dim: 0 }));
    case "dtype":
      return cast(collective(call, cast(x, "i32")), "f32");
    case "priority":
      return collective({ ...call, priority: 3 }, x);
    case "fail":
      throw new Error("this rank fails to trace");
  }
};

/** Returns a program as one rank traces it. Every value is read, so that all ranks keep all collectives. */
export const tracedBy =
  (program: Program, rank: number): ((x: Tensor, identity: Tensor) => Tensor[]) =>
  (x, identity) => {
    const values = [x];
    program.forEach((call, i) => {
      const { products, mixes } = call.own[rank]!;
      let operand = values[call.source]!;
      for (const mixed of mixes) operand = add(operand, values[mixed]!);
      const mutation = call.mutation?.rank === rank ? call.mutation.kind : undefined;
      const isEnd = call.message?.from === rank || call.message?.to === rank;
      if (call.message !== undefined && isEnd && mutation !== "silence") {
        const { from, to, source, priority } = call.message;
        const sent = add(values[source]!, i);
        operand = add(operand, sendReceive(sent, "all", [[from, to]], { priority }));
      }
      for (let product = 0; product < products; product++)
        operand = reshape(matmul(reshape(operand, [1, elements]), identity), [elements]);
      const moved =
        mutation === undefined ? collective(call, bounded(operand)) : mutated(call, mutation, isEnd, bounded(operand));
      values.push(slice(bounded(moved), [0], [elements]));
    });
    return values;
  };

export const operandsOf = (rank: number): NdArray[] => [
  NdArray.from(Array.from({ length: elements }, (_, i) => ((i * 5 + rank * 3) % 11) - 5)),
  NdArray.from(
    Array.from({ length: elements * elements }, (_, i) => (i % (elements + 1) === 0 ? 1 : 0)),
    [elements, elements],
  ),
];

export const graphOf = (program: Program, rank: number): Graph =>
  trace(tracedBy(program, rank), operandsOf(rank) as never, { mesh: sizes }).graph;

export const referenceInputs = (rank: number): ReferenceArray[] =>
  operandsOf(rank).map((array) => ({
    spec: { dtype: array.dtype, shape: array.shape },
    data: Float64Array.from(array.toNumbers()),
  }));

/** Returns the ranks of each group that contains `rank`. */
export const axesOf = (rank: number): Record<Axis, readonly number[]> => ({
  all: Array.from({ length: worldSize }, (_, other) => other),
  row: partitions.row.find((part) => part.includes(rank))!,
  column: partitions.column.find((part) => part.includes(rank))!,
});
