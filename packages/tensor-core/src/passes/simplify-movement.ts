import type { DType } from "../dtype.ts";
import type { ParamValue, ValueRef } from "../graph/graph.ts";
import { elementCount, sameShape } from "../shape.ts";
import type { RewriteContext, RewriteRule, RewriteRules } from "./rewrite.ts";

const listOf = (value: ParamValue | undefined): readonly number[] => value as readonly number[];

const passThrough: RewriteRule = ({ inputs }) => inputs[0]!;

/** An operator that only moves elements leaves a constant a constant. */
const ofConstant: RewriteRule = ({ inputs, specs }, { constantValue, constant }) => {
  const value = constantValue(inputs[0]!);
  return value === undefined ? undefined : constant(specs[0]!, value);
};

const sameSpecAsOperand: RewriteRule = ({ inputs, specs }, { spec }) =>
  sameShape(spec(inputs[0]!).shape, specs[0]!.shape) ? inputs[0]! : undefined;

/** `reshape(reshape(x))` reads x. */
const reshapeOfReshape: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "reshape" ? derive(node, inner.inputs) : undefined;
};

/** A permutation that keeps the order of all dimensions longer than 1 moves nothing: [1, n] → [n, 1]. */
const transposeAsReshape: RewriteRule = ({ inputs, params, specs }, { spec, emit }) => {
  const { shape } = spec(inputs[0]!);
  const order = listOf(params["permutation"]).filter((dim) => shape[dim] !== 1);
  if (order.some((dim, i) => i > 0 && dim < order[i - 1]!)) return undefined;
  return sameShape(shape, specs[0]!.shape) ? inputs[0]! : emit("reshape", inputs, { shape: specs[0]!.shape });
};

const transposeOfTranspose: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  if (inner.op !== "transpose") return undefined;
  const first = listOf(inner.params["permutation"]);
  return derive(node, inner.inputs, { permutation: listOf(node.params["permutation"]).map((dim) => first[dim]!) });
};

/** Stretching no dimension only adds dimensions of size 1. */
const broadcastAsReshape: RewriteRule = ({ inputs, specs }, { spec, emit }) =>
  elementCount(spec(inputs[0]!).shape) === elementCount(specs[0]!.shape) ? emit("reshape", inputs, { shape: specs[0]!.shape }) : undefined;

const broadcastOfBroadcast: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "broadcast-to" ? derive(node, inner.inputs) : undefined;
};

// Every value of the left dtype is held exactly by those on the right, so going there and back changes nothing.
const widenings: { readonly [narrow in DType]?: readonly DType[] } = {
  f16: ["f32"],
  bf16: ["f32"],
  u8: ["i32", "u32", "f32"],
  bool: ["u8", "i32", "u32", "f32", "f16", "bf16"],
};

const castOfCast: RewriteRule = ({ inputs, specs }, { producer, spec }) => {
  const inner = producer(inputs[0]!);
  if (inner.op !== "cast") return undefined;
  const from = spec(inner.inputs[0]!).dtype;
  return from === specs[0]!.dtype && widenings[from]?.includes(inner.specs[0]!.dtype) === true ? inner.inputs[0]! : undefined;
};

const castToOwn: RewriteRule = ({ inputs, specs }, { spec }) => (spec(inputs[0]!).dtype === specs[0]!.dtype ? inputs[0]! : undefined);

/** Only the dtype that bits are read as in the end matters. */
const bitcastOfBitcast: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "bitcast" ? derive(node, inner.inputs) : undefined;
};

const sliceOfSlice: RewriteRule = (node, { producer, derive }) => {
  const { inputs, params } = node;
  const inner = producer(inputs[0]!);
  if (inner.op !== "slice") return undefined;
  const [starts, ends, strides] = [listOf(params["starts"]), listOf(params["ends"]), listOf(params["strides"])];
  const [offset, step] = [listOf(inner.params["starts"]), listOf(inner.params["strides"])];
  return derive(node, inner.inputs, {
    starts: starts.map((start, dim) => offset[dim]! + start * step[dim]!),
    // The last index that is kept, plus one: `end` itself may lie beyond the operand of the inner slice.
    ends: ends.map((end, dim) => offset[dim]! + (end > starts[dim]! ? (end - 1) * step[dim]! + 1 : starts[dim]! * step[dim]!)),
    strides: strides.map((stride, dim) => stride * step[dim]!),
  });
};

/** Cutting only along dimensions that were stretched is stretching less. */
const sliceOfBroadcast: RewriteRule = ({ inputs, params, specs }, { producer, spec, derive }) => {
  const inner = producer(inputs[0]!);
  if (inner.op !== "broadcast-to") return undefined;
  const { shape } = specs[0]!;
  const operand = spec(inner.inputs[0]!).shape;
  const lead = shape.length - operand.length;
  const whole = operand.every((size, dim) => size === 1 || (size === shape[dim + lead] && listOf(params["strides"])[dim + lead] === 1));
  return whole && elementCount(shape) > 0 ? derive(inner, inner.inputs, { shape: [...shape] }) : undefined;
};

/** A slice that lies inside one operand of a `concat` reads that operand: a bucket is unpacked without having been packed. */
const sliceOfConcat: RewriteRule = (node, { producer, spec, derive }) => {
  const { inputs, params } = node;
  const inner = producer(inputs[0]!);
  if (inner.op !== "concat") return undefined;
  const dim = inner.params["dim"] as number;
  const [starts, ends] = [listOf(params["starts"]), listOf(params["ends"])];
  let begin = 0;
  for (const operand of inner.inputs) {
    const size = spec(operand).shape[dim]!;
    if (size > 0 && starts[dim]! >= begin && ends[dim]! <= begin + size && ends[dim]! > starts[dim]!) {
      const shift = (list: readonly number[]): number[] => list.map((index, i) => (i === dim ? index - begin : index));
      return derive(node, [operand], { starts: shift(starts), ends: shift(ends) });
    }
    begin += size;
  }
  return undefined;
};

/** Drop empty operands; one operand alone is the result. */
const concatOfFew: RewriteRule = (node, { spec, derive }) => {
  const { inputs } = node;
  const filled = inputs.filter((ref) => elementCount(spec(ref).shape) > 0);
  if (filled.length === 1 && inputs.length > 0) return filled[0]!;
  return filled.length === inputs.length || filled.length === 0 ? undefined : derive(node, filled);
};

/** `concat` of slices that lie one after another in one tensor, and fill it, is that tensor: an unpacked bucket packed again. */
const concatOfSlices: RewriteRule = ({ inputs, params, specs }, { producer, spec }) => {
  const dim = params["dim"] as number;
  let whole: ValueRef | undefined;
  let next = 0;
  for (const ref of inputs) {
    const { op, inputs: operands, params: cut } = producer(ref);
    const source = operands[0];
    if (op !== "slice" || source === undefined) return undefined;
    whole ??= source;
    if (whole.node !== source.node || whole.output !== source.output || listOf(cut["strides"]).some((stride) => stride !== 1))
      return undefined;
    const starts = listOf(cut["starts"]);
    if (starts.some((start, i) => start !== (i === dim ? next : 0))) return undefined;
    next = listOf(cut["ends"])[dim]!;
  }
  return whole !== undefined && sameShape(spec(whole).shape, specs[0]!.shape) ? whole : undefined;
};

const padOfNothing: RewriteRule = ({ inputs, specs }, { spec }) =>
  elementCount(specs[0]!.shape) > 0 && sameShape(spec(inputs[0]!).shape, specs[0]!.shape) ? inputs[0]! : undefined;

/** A pad whose result is one run of memory is a `concat` with constants: the memory plan then has the operand computed where it belongs. */
const padAsConcat: RewriteRule = ({ inputs, params }, { spec, emit, constant }) => {
  const { dtype, shape } = spec(inputs[0]!);
  const [low, high] = [listOf(params["low"]), listOf(params["high"])];
  const [dim, ...others] = shape.flatMap((_, own) => (low[own]! + high[own]! > 0 ? [own] : []));
  if (dim === undefined || others.length > 0 || listOf(params["interior"]).some((gap) => gap > 0)) return undefined;
  if (elementCount(shape) === 0 || shape.slice(0, dim).some((size) => size !== 1)) return undefined;
  const entries = (size: number): ValueRef[] =>
    size === 0 ? [] : [constant({ dtype, shape: shape.map((own, i) => (i === dim ? size : own)) }, params["value"] as number)];
  return emit("concat", [...entries(low[dim]!), inputs[0]!, ...entries(high[dim]!)], { dim });
};

const swapsLastTwo = (ref: ValueRef, { producer }: RewriteContext): ValueRef | undefined => {
  const { op, inputs, params } = producer(ref);
  if (op !== "transpose") return undefined;
  const order = listOf(params["permutation"]);
  const last = order.length - 1;
  return order.every((dim, i) => dim === (i === last ? last - 1 : i === last - 1 ? last : i)) ? inputs[0]! : undefined;
};

/** A product reads a transposed operand as it lies. */
const matmulOfTranspose: RewriteRule = (node, context) => {
  const {
    inputs: [a, b],
    params,
  } = node;
  const plainA = swapsLastTwo(a!, context);
  const plainB = swapsLastTwo(b!, context);
  if (plainA === undefined && plainB === undefined) return undefined;
  return context.derive(node, [plainA ?? a!, plainB ?? b!], {
    transposeA: params["transposeA"] !== (plainA !== undefined),
    transposeB: params["transposeB"] !== (plainB !== undefined),
  });
};

/** Rules for operators that move elements without computing on them. All are exact. */
export const movementRules: RewriteRules = {
  bitcast: [castToOwn, bitcastOfBitcast],
  "broadcast-to": [sameSpecAsOperand, ofConstant, broadcastAsReshape, broadcastOfBroadcast],
  cast: [castToOwn, castOfCast],
  concat: [concatOfFew, concatOfSlices],
  identity: [passThrough],
  matmul: [matmulOfTranspose],
  pad: [padOfNothing, padAsConcat],
  reshape: [sameSpecAsOperand, ofConstant, reshapeOfReshape],
  slice: [sameSpecAsOperand, ofConstant, sliceOfSlice, sliceOfBroadcast, sliceOfConcat],
  "stop-gradient": [passThrough],
  transpose: [ofConstant, transposeAsReshape, transposeOfTranspose],
};
