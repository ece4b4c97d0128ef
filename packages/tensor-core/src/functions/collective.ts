import type { CollectiveParams } from "../graph/collective-params.ts";
import type { Reduction } from "../communicator.ts";
import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { axisSize, emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { full, multiply } from "./elementwise.ts";

// Along an axis with one rank, collectives return their operand, so the graph for one rank contains no collectives and
// needs no communicator. Exception: ragged collectives stay in the graph, even without a communicator, because they
// remove rows beyond the count and reject invalid counts.

export interface CollectiveOptions {
  /**
   * Scheduling priority, 0 to 3, see `CollectiveRequest`. The gradient's collective has the same priority as the
   * forward collective. Default: 0.
   */
  readonly priority?: number | undefined;
}

const paramsOf = (
  op: string,
  operands: readonly Tensor[],
  axis: string,
  options: CollectiveOptions,
): CollectiveParams => {
  requireOperands(op, operands);
  const { priority } = checkOptions(`${op}(…)`, options, { priority: true });
  if (typeof axis !== "string" || axis === "")
    throw new ArgumentError(
      `${op}: its axis is ${describe(axis)}; name the mesh axis of the participating ranks, such as "data"`,
    );
  if (priority === undefined) return { axis, axisSize: axisSize(axis) };
  if (!Number.isInteger(priority) || priority < 0 || priority > 3)
    throw new ArgumentError(
      `${op}: priority ${priority} along axis "${axis}" is not one of 0, 1, 2, 3; leave it out for the default`,
    );
  return { axis, axisSize: axisSize(axis), priority };
};

const reductions: readonly Reduction[] = ["sum", "max", "min"];

const requireReduction = (op: string, reduction: Reduction): Reduction => {
  if (!reductions.includes(reduction))
    throw new ArgumentError(
      `${op}: there is no reduction ${describe(reduction)}; use ${reductions.join(", ")}, or allReduceMean for a mean`,
    );
  return reduction;
};

const checkRank = (op: string, name: string, rank: number, axis: string): void => {
  const worldSize = axisSize(axis);
  if (!Number.isInteger(rank) || rank < 0 || rank >= worldSize) {
    throw new ArgumentError(
      `${op}: ${name} ${rank} is not a rank of axis "${axis}", which has ${worldSize}; use 0 to ${worldSize - 1}`,
    );
  }
};

/**
 * Returns this rank's coordinate along a mesh axis, an i32 scalar.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const result = await evaluate(() => axisIndex("data"), referenceBackend())();
 * console.log(result.item()); // 0
 * ```
 */
export const axisIndex = (axis: string): Tensor => {
  const worldSize = axisSize(axis);
  return worldSize === 1 ? full([], 0, "i32") : emitOne("axis-index", [], { axis, axisSize: worldSize });
};

/**
 * Reduces `x` over all ranks of `axis`, and returns the result on all ranks. Accepts f32, f16, bf16, i32 and u32.
 * Gradients flow only for "sum".
 *
 * Cost: 2(P−1)/P of the bytes of `x` sent per rank.
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => allReduce(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const allReduce = (
  x: Tensor,
  axis: string,
  reduction: Reduction = "sum",
  options: CollectiveOptions = {},
): Tensor => {
  const params = paramsOf("allReduce", [x], axis, options);
  requireReduction("allReduce", reduction);
  return params.axisSize === 1 ? x : emitOne("all-reduce", [x], { ...params, reduction });
};

/**
 * Computes the mean of `x` over the ranks of `axis`, f32: the sum times 1/P.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => allReduceMean(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const allReduceMean = (x: Tensor, axis: string, options: CollectiveOptions = {}): Tensor => {
  const sum = allReduce(x, axis, "sum", options);
  return sum === x ? x : multiply(sum, 1 / axisSize(axis));
};

/**
 * Reduces `x`, `[P·n, …]`, over all ranks, and returns chunk r of the result, `[n, …]`, on rank r. Cost: (P−1)/P of the
 * bytes of `x` sent per rank.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => reduceScatter(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const reduceScatter = (
  x: Tensor,
  axis: string,
  reduction: Reduction = "sum",
  options: CollectiveOptions = {},
): Tensor => {
  const params = paramsOf("reduceScatter", [x], axis, options);
  requireReduction("reduceScatter", reduction);
  return params.axisSize === 1 ? x : emitOne("reduce-scatter", [x], { ...params, reduction });
};

/**
 * Concatenates the operands `[n, …]` of all ranks along dimension 0, in rank order: `[P·n, …]`. Cost: P−1 times the
 * bytes of `x` sent per rank.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => allGather(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const allGather = (x: Tensor, axis: string, options: CollectiveOptions = {}): Tensor => {
  const params = paramsOf("allGather", [x], axis, options);
  return params.axisSize === 1 ? x : emitOne("all-gather", [x], params);
};

/**
 * Splits dimension 0 into P chunks and sends chunk r to rank r; chunk r of the result is received from rank r. Cost:
 * (P−1)/P of the bytes of `x` sent per rank.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => allToAll(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const allToAll = (x: Tensor, axis: string, options: CollectiveOptions = {}): Tensor => {
  const params = paramsOf("allToAll", [x], axis, options);
  return params.axisSize === 1 ? x : emitOne("all-to-all", [x], params);
};

/**
 * Result of a ragged collective: received rows in chunks of fixed capacity, padded with zeros, and the number of rows
 * from each rank.
 */
export interface RaggedResult {
  /** Received rows, `[P·C, …]`: chunk r has the rows from rank r, followed by zeros. */
  readonly x: Tensor;
  /** Number of rows received from each rank, i32[P]. */
  readonly rows: Tensor;
}

const ragged = (op: string, x: Tensor, rows: Tensor, params: CollectiveParams): RaggedResult => {
  const [received, counts] = emit(op, [x, rows], params) as [Tensor, Tensor];
  return { x: received, rows: counts };
};

/**
 * All-to-all with a variable number of rows: chunk r of `x` has capacity for C rows, and only its first `rows[r]` rows
 * are sent to rank r. Shapes are fixed, so the graph is compiled only once; counts may differ between runs.
 *
 * Cost: each rank sends its rows for other ranks, and 4 (P − 1) bytes of counts.
 *
 * @param x `[P·C, …]`, any dtype; for example 4 ranks with capacity for 32 tokens each: `[128, 512]`.
 * @param rows i32[P], each 0 to C. A run with a count outside this range throws an `ArgumentError` before data is sent.
 * @example const arrived = raggedAllToAll(tokens, counts, "expert"); // and back: raggedAllToAll(done, arrived.rows,
 * "expert")
 */
export const raggedAllToAll = (x: Tensor, rows: Tensor, axis: string, options: CollectiveOptions = {}): RaggedResult =>
  ragged("ragged-all-to-all", x, rows, paramsOf("raggedAllToAll", [x, rows], axis, options));

/**
 * All-gather with a variable number of rows per rank: sends the first `rows` rows of `x`. Shapes are fixed; counts may
 * differ between ranks and runs.
 *
 * Cost: each rank sends P − 1 copies of its first `rows` rows, and 4 (P − 1) bytes of counts.
 *
 * @param x `[C, …]`, any dtype; C is the capacity.
 * @param rows i32 scalar, 0 to C. A run with a count outside this range throws an `ArgumentError` before data is sent.
 * @example const all = raggedAllGather(largest, count, "data"); // the entries above a threshold, from every rank
 */
export const raggedAllGather = (x: Tensor, rows: Tensor, axis: string, options: CollectiveOptions = {}): RaggedResult =>
  ragged("ragged-all-gather", x, rows, paramsOf("raggedAllGather", [x, rows], axis, options));

/**
 * Copies `x` of rank `root` to all ranks of `axis`.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => broadcastFromRoot(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const broadcastFromRoot = (x: Tensor, axis: string, root = 0, options: CollectiveOptions = {}): Tensor => {
  checkRank("broadcast", "root", root, axis);
  const params = paramsOf("broadcast", [x], axis, options);
  return params.axisSize === 1 ? x : emitOne("broadcast", [x], { ...params, root });
};

/**
 * Computes the sum of `x` over the ranks of `axis` on rank `root`; other ranks return zeros. Accepts f32, f16, bf16,
 * i32 and u32. All ranks of the axis must call this function, even if a rank does not use the result. The gradient on
 * each rank is the gradient of the root's result.
 *
 * Cost: each rank sends `x` once, about half as many bytes as `allReduce` sends.
 *
 * @throws ArgumentError if `root` is not a rank of the axis.
 * @example
 * ```ts
 * // In a mesh, rank 0 of the axis gets the sum.
 * const apply = (x: Tensor) => reduceToRoot(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const reduceToRoot = (x: Tensor, axis: string, root = 0, options: CollectiveOptions = {}): Tensor => {
  checkRank("reduceToRoot", "root", root, axis);
  const params = paramsOf("reduceToRoot", [x], axis, options);
  return params.axisSize === 1 ? x : emitOne("reduce", [x], { ...params, root });
};

/**
 * Computes the mean of `x` over the ranks of `axis` on rank `root`, f32: the sum times 1/P. Other ranks return zeros.
 *
 * @example
 * ```ts
 * // One rank; a mesh gives more ranks.
 * const apply = (x: Tensor) => reduceMeanToRoot(x, "data");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const reduceMeanToRoot = (x: Tensor, axis: string, root = 0, options: CollectiveOptions = {}): Tensor => {
  const sum = reduceToRoot(x, axis, root, options);
  return sum === x ? x : multiply(sum, 1 / axisSize(axis));
};

/**
 * Point-to-point transfer: for each pair, rank `to` receives `x` of rank `from`. Ranks without a sender return zeros.
 *
 * @param pairs Sender and receiver ranks. Each rank occurs at most once as `from` and at most once as `to`.
 * @example
 * ```ts
 * // In a mesh with 4 stages, [[0, 1], [1, 2], [2, 3]] passes x to the next stage.
 * const apply = (x: Tensor) => sendReceive(x, "pipeline", [[0, 0]]);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2]));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const sendReceive = (
  x: Tensor,
  axis: string,
  pairs: readonly (readonly [from: number, to: number])[],
  options: CollectiveOptions = {},
): Tensor => {
  if (!Array.isArray(pairs) || !pairs.every((pair) => Array.isArray(pair) && pair.length === 2))
    throw new ArgumentError(
      `sendReceive: its pairs are ${describe(pairs)}; pass a list of [from, to], such as [[0, 1], [1, 0]]`,
    );
  for (const [from, to] of pairs) {
    checkRank("sendReceive", "from", from, axis);
    checkRank("sendReceive", "to", to, axis);
  }
  for (const end of [0, 1] as const) {
    const seen = new Set(pairs.map((pair) => pair[end]));
    if (seen.size !== pairs.length) {
      throw new ArgumentError(
        `sendReceive: the pairs ${JSON.stringify(pairs)} name a rank twice as ${end === 0 ? "sender" : "receiver"}; each rank sends and receives at most once, use two calls`,
      );
    }
  }
  const params = paramsOf("sendReceive", [x], axis, options);
  if (params.axisSize === 1) return pairs.length === 1 ? x : full(x.shape, 0, x.dtype);
  return emitOne("send-receive", [x], { ...params, pairs: pairs.map(([from, to]) => [from, to]) });
};
