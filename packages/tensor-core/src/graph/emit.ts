import { describe, isNumberList, isPromise, isSpec } from "../describe.ts";
import { ArgumentError, OperatorError } from "../errors.ts";
import { excerpt } from "../excerpt.ts";
import { requireDType, requireShape, type TensorSpec } from "../shape.ts";
import { type Node, type Origin, ownOrigin, type Params, type Phase, phases, type ValueRef } from "./graph.ts";
import { addDefinition, type Operator, type OperatorTable, unknownOperator, type VjpContext } from "./operator.ts";
import { Tensor } from "./tensor.ts";

/** Names of the mesh axes and how many ranks lie along each. */
export type Mesh = { readonly [axis: string]: number };

/** The position of one rank along mesh axes. */
export type MeshPlace = { readonly [axis: string]: number };

/** A derivative that takes the place of those of the nodes that computed some values. */
export interface GradientRule {
  /** One entry per operand of the node, `undefined` where nothing flows. */
  readonly rule: (context: VjpContext<Params>) => (Tensor | undefined)[];
  /** So many operands are arguments; the others are the values, one for each output. */
  readonly numArguments: number;
}

/** What differentiation has told of a trace. Refers to its nodes. */
export interface Derivatives {
  /** Per value (`valueKey`), what was carried back to it, once for each time that it was differentiated. */
  readonly cotangents: Map<string, ValueRef[]>;
  /** What was differentiated with respect to, in order. */
  readonly primals: ValueRef[];
}

export interface TraceState {
  readonly nodes: Node[];
  /** Operators of Skein. */
  readonly operators: OperatorTable;
  /** Operators of users that the trace has met. */
  readonly definitions: Map<string, Operator>;
  /** Nodes that pass values on with a derivative of their own, by id; `trace` takes them out in the end. */
  readonly gradientRules: Map<number, GradientRule>;
  readonly derivatives: Derivatives;
  /**
   * Where `tap` puts values, by their names, and what makes of each the value that computation goes on from;
   * `undefined` where nobody asked for them.
   */
  taps: { readonly values: Map<string, Tensor>; readonly mark: (x: Tensor, name: string) => Tensor } | undefined;
  readonly mesh: Mesh;
  /** Of the rank that the trace is for; `undefined` for an axis where it is for any. */
  readonly place: MeshPlace;
  scope: string;
  phase: Phase;
  region: string;
  /** `checkpoint` regions so far. */
  numRegions: number;
  /** Operators of users whose compositions are being traced, outermost first. */
  composing: readonly string[];
}

/** A trace in which nothing has been recorded. */
export const emptyTrace = (
  operators: OperatorTable,
  {
    mesh = {},
    place = {},
    composing = [],
  }: {
    readonly mesh?: Mesh | undefined;
    readonly place?: MeshPlace | undefined;
    readonly composing?: readonly string[] | undefined;
  },
): TraceState => ({
  nodes: [],
  operators,
  definitions: new Map(),
  gradientRules: new Map(),
  derivatives: { cotangents: new Map(), primals: [] },
  taps: undefined,
  mesh,
  place,
  ...ownOrigin,
  numRegions: 0,
  composing,
});

// Tracing is synchronous, so one stack of running traces is enough; `trace` restores it even when the traced function
// throws. It is the only mutable state of a module in this package: without it each operator call would carry the trace
// by hand.
const running: TraceState[] = [];

/** The innermost trace, if there is one. */
export const runningTrace = (): TraceState | undefined => running.at(-1);

/** How a function is run, as a program of its own. */
const runnable =
  'import { add, evaluate, NdArray, referenceBackend } from "@skein/tensor-core"; ' +
  "console.log(await evaluate(add, referenceBackend())(NdArray.from([1, 2]), NdArray.from([3, 4])));";

/** @param caller what needs a trace, for the message. */
export const currentTrace = (caller: string): TraceState => {
  const state = runningTrace();
  if (state === undefined)
    throw new ArgumentError(
      `${caller}: it was called outside of a traced function, where nothing records what it does; hand the function around it, or itself, to evaluate() or jit() of a backend, and arrays to what they return, as in: ${runnable}`,
    );
  return state;
};

/** What to write in place of an operand that is no tensor. */
const cureOf = (value: unknown): string => {
  if (value === undefined)
    return "give it a Tensor, or look whether the traced function was called with too few arguments";
  if (isPromise(value)) return "await it before the traced function is called, and pass it in as an argument";
  if (isSpec(value)) return "pass it in as an argument of the traced function";
  if (ArrayBuffer.isView(value))
    return "make it an NdArray and pass that in as an argument of the traced function, or write constant([...values]) for a few known numbers";
  if (typeof value === "number" || isNumberList(value)) return `write constant(${excerpt(value)})`;
  return "give it a Tensor: an argument of the traced function, or what another function returned";
};

/**
 * The running trace, if it is that of all `operands`. Functions that look at an operand before they emit ask for it
 * first.
 *
 * @throws ArgumentError that says what was given instead, and what to write. With `numbers`, numbers may stand beside
 * tensors.
 */
export const requireOperands = (
  op: string,
  operands: readonly unknown[],
  { numbers = false }: { readonly numbers?: boolean } = {},
): TraceState => {
  const state = currentTrace(op);
  operands.forEach((operand, i) => {
    if (operand instanceof Tensor) {
      if (operand.trace !== state)
        throw new ArgumentError(
          `${op}: ${operands.length === 1 ? "its operand" : `operand ${i + 1}`}, ${operand}, is a tensor of another trace; pass it in as an argument of the traced function`,
        );
    } else if (!numbers || typeof operand !== "number")
      throw new ArgumentError(
        `${op}: ${operands.length === 1 ? "its operand" : `operand ${i + 1}`} is ${describe(operand)}, where a Tensor is due; ${cureOf(operand)}`,
      );
  });
  return state;
};

/** Run `fn` as the innermost trace. */
export const withTrace = <T>(state: TraceState, fn: () => T): T => {
  running.push(state);
  try {
    return fn();
  } finally {
    running.pop();
  }
};

/** An operator of Skein or of a user by its name, as a trace knows it. */
export const operatorIn = (state: TraceState, op: string): Operator | undefined =>
  Object.hasOwn(state.operators, op) ? state.operators[op] : state.definitions.get(op);

/** Trace `fn` as a part of the composition of operator `op`, in which that operator has no place. */
export const composing = <T>(op: string, fn: () => T): T => {
  const state = currentTrace("composing");
  const outer = state.composing;
  state.composing = [...outer, op];
  try {
    return fn();
  } finally {
    state.composing = outer;
  }
};

const append = (state: TraceState, node: Omit<Node, "id" | keyof Origin>): Tensor[] => {
  const id = state.nodes.length;
  state.nodes.push({ id, ...node, scope: state.scope, phase: state.phase, region: state.region });
  return node.specs.map((spec, output) => new Tensor(spec, { node: id, output }, state));
};

const refsOf = (tensors: readonly Tensor[]): ValueRef[] => tensors.map((tensor) => tensor.ref);

const apply = (state: TraceState, operator: Operator, inputs: readonly Tensor[], params: Params): Tensor[] => {
  const { name } = operator;
  if (state.composing.includes(name))
    throw new OperatorError(
      name,
      `its composition uses the operator itself (${[...state.composing, name].join(" uses ")}); compose it of other operators`,
    );
  // Plain data: a shape rule may return an operand itself, and with it the whole trace.
  const specs = operator.infer(inputs, params).map(({ dtype, shape }) => ({ dtype, shape }));
  for (const { dtype, shape } of specs) {
    requireDType(name, dtype);
    requireShape(name, shape);
  }
  return append(state, { op: name, inputs: refsOf(inputs), params, specs });
};

/** Apply operator `op`: check its inputs, infer its outputs, append the node. */
export const emit = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor[] => {
  const state = requireOperands(op, inputs);
  const operator = operatorIn(state, op);
  if (operator === undefined) throw unknownOperator(op, [...Object.keys(state.operators), ...state.definitions.keys()]);
  return apply(state, operator, inputs, params);
};

/** As `emit`, for a user's operator, whose definition the trace keeps. */
export const emitDefined = (operator: Operator, inputs: readonly Tensor[], params: Params): Tensor[] => {
  const state = requireOperands(operator.name, inputs);
  addDefinition(state.definitions, operator);
  return apply(state, operator, inputs, params);
};

/** Pass `values` on with a derivative of their own: what `rule` says flows to `args`. Costs nothing in the graph. */
export const emitWithGradient = (
  args: readonly Tensor[],
  values: readonly Tensor[],
  rule: (context: VjpContext<Params>) => (Tensor | undefined)[],
): Tensor[] => {
  const state = currentTrace("customGradient");
  state.gradientRules.set(state.nodes.length, { rule, numArguments: args.length });
  const specs = values.map(({ dtype, shape }): TensorSpec => ({ dtype, shape }));
  return append(state, { op: "custom-gradient", inputs: refsOf([...args, ...values]), params: {}, specs });
};

/** `emit` for operators with one output. */
export const emitOne = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor =>
  emit(op, inputs, params)[0]!;

/** Run `fn` with `name` appended to the scope path, so that its nodes say which part of the model they are. */
export const scope = <T>(name: string, fn: () => T): T => {
  const state = currentTrace("scope");
  if (typeof fn !== "function")
    throw new ArgumentError(`scope: ${describe(fn)} was given to run; write scope("name", () => …)`);
  const outer = state.scope;
  state.scope = outer === "" ? name : `${outer}/${name}`;
  try {
    return fn();
  } finally {
    state.scope = outer;
  }
};

/**
 * Run `fn` as a part of a step: its nodes say that they belong to this phase. Differentiation marks what it adds as
 * `backward` itself, `exchange` of `@skein/compressors` as `communication`, optimizers and `applyUpdates` as `update`.
 */
export const inPhase = <T>(phase: Phase, fn: () => T): T => {
  const state = currentTrace("inPhase");
  if (!phases.includes(phase))
    throw new ArgumentError(`inPhase: the phase is ${describe(phase)}; it is one of ${phases.join(", ")}`);
  const outer = state.phase;
  state.phase = phase;
  try {
    return fn();
  } finally {
    state.phase = outer;
  }
};

/** Number of ranks along a mesh axis; an axis that the mesh does not name has one rank. */
export const axisSize = (axis: string): number => currentTrace("axisSize").mesh[axis] ?? 1;

/**
 * Position of the rank that a function is traced for along a mesh axis, while it is traced: a plain number, by which
 * ranks may trace different graphs. A rank then computes, keeps and pays for its own part alone: the inverses that it
 * owns, its stage. All ranks must have the same collectives in the same order, which they compare when they compile; a
 * message of `sendReceive` only those that it names.
 *
 * `axisIndex` is the same position as a tensor, in one graph that all ranks share. Along an axis of one rank it is 0.
 *
 * @throws ArgumentError where the trace was not told its place: `jit` takes it from its communicators.
 * @example const own = blocks.filter((_, i) => i % numRanks === meshPlace("data"));
 */
export const meshPlace = (axis: string): number => {
  const { mesh, place } = currentTrace("meshPlace");
  const size = mesh[axis] ?? 1;
  if (size === 1) return 0;
  const position = Object.hasOwn(place, axis) ? place[axis] : undefined;
  if (position === undefined)
    throw new ArgumentError(
      `meshPlace: the trace is for any of the ${size} ranks along axis "${axis}"; trace for one, by { communicators } or { place: { ${axis}: 0 } }, or write axisIndex("${axis}"), which is a tensor and differs when the graph is run`,
    );
  return position;
};

/** @throws ArgumentError for a position that no rank of the mesh has. */
export const requirePlace = (caller: string, mesh: Mesh, place: MeshPlace): void => {
  for (const [axis, position] of Object.entries(place)) {
    const size = mesh[axis] ?? 1;
    if (!Number.isInteger(position) || position < 0 || position >= size)
      throw new ArgumentError(
        `${caller}: place ${describe(position)} along axis "${axis}" is none of its ${size} ranks; ${Object.hasOwn(mesh, axis) ? `give 0 to ${size - 1}` : `say how many there are, as in { mesh: { ${axis}: 2 } }`}`,
      );
  }
};
