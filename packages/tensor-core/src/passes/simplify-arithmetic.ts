import { roundToStorage } from "../dtype.ts";
import type { Node, ValueRef } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { elementCount, sameShape } from "../shape.ts";
import type { RewriteContext, RewriteRule, RewriteRules } from "./rewrite.ts";

/** Drop an operand that changes nothing: `x · 1`, `x / 1`, `x − 0`, `x + 0`. */
const neutral =
  (side: "either" | "right", value: number): RewriteRule =>
  ({ inputs: [a, b] }, { constantValue }) => {
    if (constantValue(b!) === value) return a!;
    return side === "either" && constantValue(a!) === value ? b! : undefined;
  };

/**
 * `x − scatter(v)` onto zeros is `x` with `−v` added at those positions: what a sparse encoder keeps costs as much as what it sends. Only
 * where no position comes twice, as those of `top-k`; else the sums would round otherwise.
 */
const subtractScattered: RewriteRule = ({ inputs: [a, b] }, { producer, constantValue, spec, derive, emit }) => {
  const scatter = producer(b!);
  if (scatter.op !== "scatter-add" || spec(b!).shape.length !== 1 || !Object.is(constantValue(scatter.inputs[0]!), 0)) return undefined;
  const [, indices, updates] = scatter.inputs;
  if (producer(indices!).op !== "top-k" || spec(indices!).shape.length !== 1) return undefined;
  return derive(scatter, [a!, indices!, emit("negate", [updates!])]);
};

const negateOfNegate: RewriteRule = ({ inputs }, { producer }) => {
  const inner = producer(inputs[0]!);
  return inner.op === "negate" ? inner.inputs[0]! : undefined;
};

const whereDecided: RewriteRule = ({ inputs: [condition, a, b] }, { constantValue }) => {
  if (a!.node === b!.node && a!.output === b!.output) return a!;
  const holds = constantValue(condition!);
  return holds === undefined ? undefined : holds !== 0 ? a! : b!;
};

/** A sum of equal numbers; only of constants, where the product is the better rounding of the two. */
const sumOfConstant: RewriteRule = ({ inputs, specs }, { constantValue, constant, spec }) => {
  const value = constantValue(inputs[0]!);
  const total = elementCount(spec(inputs[0]!).shape);
  const kept = elementCount(specs[0]!.shape);
  if (value === undefined || kept === 0) return undefined;
  const terms = total / kept;
  // Beyond 2^53 the f64 product has lost the low bits that a wrapping integer sum keeps.
  if (specs[0]!.dtype !== "f32" && !Number.isSafeInteger(value * terms)) return undefined;
  return constant(specs[0]!, terms === 0 ? 0 : roundToStorage(value * terms, specs[0]!.dtype));
};

/** Reducing dimensions of size 1 only drops them. */
const reduceOfOnes: RewriteRule = ({ inputs, specs }, { spec, emit }) => {
  const count = elementCount(specs[0]!.shape);
  return count > 0 && elementCount(spec(inputs[0]!).shape) === count ? emit("reshape", inputs, { shape: specs[0]!.shape }) : undefined;
};

/** An elementwise operator on constants is a constant, computed in f64. */
const foldConstants: RewriteRule = ({ op, inputs, params, specs }, { constantValue, constant, spec }) => {
  const scalar = operators[op]?.scalar;
  if (scalar === undefined || inputs.length === 0) return undefined;
  const values = inputs.map(constantValue);
  if (values.some((value) => value === undefined)) return undefined;
  // A constant is rounded when it is loaded, so the function must see what it would have loaded.
  const loaded = values.map((value, i) => roundToStorage(value!, spec(inputs[i]!).dtype));
  return constant(specs[0]!, roundToStorage(scalar(loaded, params, spec(inputs[0]!).dtype), specs[0]!.dtype));
};

const stretchedOperand = (ref: ValueRef, { producer }: RewriteContext): Node | undefined => {
  const node = producer(ref);
  return node.op === "broadcast-to" ? node : undefined;
};

/** Compute before stretching: `f(broadcast(x), c)` is `broadcast(f(x, c))`, on as many elements as x has. */
const computeThenStretch: RewriteRule = (node, context) => {
  const { op, inputs, specs } = node;
  if (operators[op]?.scalar === undefined) return undefined;
  const stretched = inputs.map((ref) => stretchedOperand(ref, context));
  const source = stretched.find((node) => node !== undefined)?.inputs[0];
  if (source === undefined) return undefined;
  const { shape } = context.spec(source);
  const small: ValueRef[] = [];
  for (const [i, ref] of inputs.entries()) {
    const own = stretched[i]?.inputs[0];
    const value = context.constantValue(ref);
    if (own !== undefined && sameShape(context.spec(own).shape, shape)) small.push(own);
    else if (value !== undefined) small.push(context.constant({ dtype: context.spec(ref).dtype, shape }, value));
    else return undefined;
  }
  return context.emit("broadcast-to", [context.derive(node, small)], { shape: specs[0]!.shape });
};

/**
 * Rules for operators that compute. All give the same bits, but for two: `x + 0` keeps the sign of a zero that the
 * addition would have made positive (and `0 − 0` of scattered zeros may lose it), and folded f32 constants are rounded once instead of at
 * each operator.
 */
export const arithmeticRules: RewriteRules = {
  add: [neutral("either", 0)],
  divide: [neutral("right", 1)],
  multiply: [neutral("either", 1)],
  negate: [negateOfNegate],
  "reduce-max": [reduceOfOnes],
  "reduce-min": [reduceOfOnes],
  subtract: [neutral("right", 0), subtractScattered],
  sum: [sumOfConstant, reduceOfOnes],
  where: [whereDecided],
  "*": [foldConstants, computeThenStretch],
};
