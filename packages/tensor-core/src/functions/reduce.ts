import { ShapeError } from "../errors.ts";
import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import { elementCount, formatSpec, resolveDim, resolveDims } from "../shape.ts";
import { type DimOption, multiply, square, subtract } from "./elementwise.ts";

export interface ReduceOptions {
  /** Dimensions to reduce. Default: all. */
  readonly dims?: number | readonly number[];
  /** Whether reduced dimensions are kept with size 1, so that the result broadcasts with `x`. Default: false. */
  readonly keepDims?: boolean;
}

const reduceOptions: OptionNames<ReduceOptions> = { dims: true, keepDims: true };

const reduce = (call: string, op: string, x: Tensor, options: ReduceOptions): Tensor => {
  const { dims, keepDims = false } = checkOptions(call, options, reduceOptions);
  requireOperands(call.slice(0, call.indexOf("(")), [x]);
  const resolved = resolveDims(dims, x.rank, op);
  const result = resolved.length === 0 ? x : emitOne(op, [x], { dims: resolved });
  if (!keepDims) return result;
  return emitOne("reshape", [result], { shape: x.shape.map((size, dim) => (resolved.includes(dim) ? 1 : size)) });
};

/**
 * Computes the sum over `dims`; 0 if there are no entries. Accepts f32, i32 and u32.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => sum(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [3, 7]
 * ```
 */
export const sum = (x: Tensor, options: ReduceOptions = {}): Tensor => reduce("sum(x)", "sum", x, options);

/**
 * Computes the maximum over `dims`; the smallest value of the dtype if there are no entries. Several equal maxima share
 * the gradient equally.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => reduceMax(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [2, 4]
 * ```
 */
export const reduceMax = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  reduce("reduceMax(x)", "reduce-max", x, options);

/**
 * Computes the minimum over `dims`; the largest value of the dtype if there are no entries. Several equal minima share
 * the gradient equally.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => reduceMin(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 3]
 * ```
 */
export const reduceMin = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  reduce("reduceMin(x)", "reduce-min", x, options);

/**
 * Whether any bool over `dims` is true.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => any(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 1, 1], [3], "bool"));
 * console.log(result.toNumbers()); // [1]
 * ```
 */
export const any = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  reduce("any(x)", "reduce-max", requireBool(x, "any"), options);

/**
 * Whether all bools over `dims` are true.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => all(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 1, 1], [3], "bool"));
 * console.log(result.toNumbers()); // [0]
 * ```
 */
export const all = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  reduce("all(x)", "reduce-min", requireBool(x, "all"), options);

const requireBool = (x: Tensor, op: string): Tensor => {
  requireOperands(op, [x]);
  if (x.dtype !== "bool")
    throw new ShapeError(op, `takes bool, got ${formatSpec(x)}; compare it, for example notEqual(x, 0)`);
  return x;
};

const reducedCount = (x: Tensor, dims: ReduceOptions["dims"], op: string): number =>
  elementCount(resolveDims(dims, x.rank, op).map((dim) => x.shape[dim]!));

/** Checks that the dtype is f32. Integers are rejected, because their mean is not an integer. */
const requireReal = (x: Tensor, op: string): Tensor => {
  requireOperands(op, [x]);
  if (x.dtype !== "f32")
    throw new ShapeError(op, `takes f32, got ${formatSpec(x)}, which cannot represent its ${op}; cast it to f32 first`);
  return x;
};

/**
 * Computes the arithmetic mean over `dims`, f32; NaN if there are no entries.
 *
 * @throws ShapeError if the dtype is not f32; cast integers first.
 * @example
 * ```ts
 * const apply = (x: Tensor) => mean(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1.5, 3.5]
 * ```
 */
export const mean = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  multiply(reduce("mean(x)", "sum", requireReal(x, "mean"), options), 1 / reducedCount(x, options.dims, "mean"));

export interface VarianceOptions extends ReduceOptions {
  /**
   * Number subtracted from n in the divisor. 0: population variance; 1: unbiased estimate from a sample. Default: 0.
   */
  readonly correction?: number;
}

/**
 * Computes the variance over `dims`, f32: `Σ (x - mean)² / (n - correction)`.
 *
 * @throws ShapeError if the dtype is not f32; cast integers first.
 * @example
 * ```ts
 * const apply = (x: Tensor) => variance(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [0.25, 0.25]
 * ```
 */
export const variance = (x: Tensor, options: VarianceOptions = {}): Tensor => {
  const { correction = 0, ...reduced } = checkOptions("variance(x)", options, { ...reduceOptions, correction: true });
  const centred = subtract(requireReal(x, "variance"), mean(x, { ...reduced, keepDims: true }));
  return multiply(sum(square(centred), reduced), 1 / (reducedCount(x, reduced.dims, "variance") - correction));
};

const argReduce = (op: "argmax" | "argmin", x: Tensor, options: DimOption): Tensor => {
  const { dim = -1 } = checkOptions(`${op}(x)`, options, { dim: true });
  requireOperands(op, [x]);
  return emitOne(op, [x], { dim: resolveDim(dim, x.rank, op) });
};

/**
 * Returns the index (i32) of the maximum along `dim` (default: the last dimension); the first index if several are
 * equal. NaN is treated as the maximum.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => argmax(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 3, 2]));
 * console.log(result.toNumbers()); // [1]
 * ```
 */
export const argmax = (x: Tensor, options: DimOption = {}): Tensor => argReduce("argmax", x, options);

/**
 * Returns the index (i32) of the minimum along `dim` (default: the last dimension); the first index if several are
 * equal. NaN is treated as the minimum.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => argmin(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 3, 2]));
 * console.log(result.toNumbers()); // [0]
 * ```
 */
export const argmin = (x: Tensor, options: DimOption = {}): Tensor => argReduce("argmin", x, options);

export interface CumsumOptions extends DimOption {
  /** Whether to sum from the last entry to the first. Default: false. */
  readonly reverse?: boolean;
}

/**
 * Computes the inclusive cumulative sum along `dim` (default: the last dimension).
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => cumsum(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3]));
 * console.log(result.toNumbers()); // [1, 3, 6]
 * ```
 */
export const cumsum = (x: Tensor, options: CumsumOptions = {}): Tensor => {
  const { dim = -1, reverse = false } = checkOptions("cumsum(x)", options, { dim: true, reverse: true });
  requireOperands("cumsum", [x]);
  return emitOne("cumsum", [x], { dim: resolveDim(dim, x.rank, "cumsum"), reverse });
};

export interface TopKOptions {
  /**
   * Whether results are sorted in descending order. If false, results are in index order, which is cheaper. Default:
   * true.
   */
  readonly sorted?: boolean;
  /** Sort key: the value or its magnitude. Returned values always keep their signs. Default: "value". */
  readonly by?: "value" | "magnitude";
}

/**
 * Returns the `k` largest entries along the last dimension. Equal entries are ordered by index; NaN is treated as the
 * maximum.
 *
 * @returns `[values, indices]`, shaped like `x` with a last dimension of `k`; indices are i32.
 * @example
 * ```ts
 * const apply = (x: Tensor) => topK(x, 2)[0];
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 4, 3]));
 * console.log(result.toNumbers()); // [4, 3]
 * ```
 */
export const topK = (x: Tensor, k: number, options: TopKOptions = {}): [values: Tensor, indices: Tensor] => {
  const { sorted = true, by = "value" } = checkOptions("topK(x, k)", options, { sorted: true, by: true });
  const [values, indices] = emit("top-k", [x], { k, sorted, by });
  return [values!, indices!];
};

/**
 * Counts the values in each of `bins` bins of equal width over [low, high]. The bin of x is
 * `⌊(x − low)/(high − low) · bins⌋`; `x = high` is in the last bin.
 *
 * Values outside the range, and NaN, are not counted. If low = high, or if the range is narrower than `bins · 2⁻¹²⁸`,
 * all values in the range are in the last bin. All counts are 0 if low > high, if low or high is NaN, or if
 * `high − low ≥ 2¹²⁶`. Each step is rounded to f32, and magnitudes below 2⁻¹²⁶ are treated as 0, so that all backends
 * return equal counts.
 *
 * @param x f32, any shape.
 * @param low f32 [].
 * @param high f32 [].
 * @param bins Number of bins, 1 to 65536. Fastest with at most 4096 bins.
 * @returns i32 [bins].
 * @example
 * ```ts
 * const x = NdArray.from([0, 1, 3, 4]);
 * const low = NdArray.from([0], []);
 * const high = NdArray.from([4], []);
 * const apply = (x: Tensor, low: Tensor, high: Tensor) => histogram(x, low, high, 2);
 * const result = await evaluate(apply, referenceBackend())(x, low, high);
 * console.log(result.toNumbers()); // [2, 2]
 * ```
 */
export const histogram = (x: Tensor, low: Tensor, high: Tensor, bins: number): Tensor =>
  emitOne("histogram", [x, low, high], { bins });
