import { describe, isNumberList, isPromise, isSpec } from "../describe.ts";
import { ArgumentError, OperatorError } from "../errors.ts";
import { excerpt } from "../excerpt.ts";
import { requireDType, requireShape, type TensorSpec } from "../shape.ts";
import { type Node, type Origin, ownOrigin, type Params, type Phase, phases, type ValueRef } from "./graph.ts";
import { addDefinition, type Operator, type OperatorTable, unknownOperator, type VjpContext } from "./operator.ts";
import { Tensor } from "./tensor.ts";

/** Mesh axes by name, with the number of ranks along each axis. */
export type Mesh = { readonly [axis: string]: number };

/** Coordinates of one rank along mesh axes. */
export type MeshCoordinates = { readonly [axis: string]: number };

/** Gradient rule for a list of values. Replaces the derivatives of the nodes that computed the values. */
export interface GradientRule {
  /** Returns the gradient of each operand of the node; `undefined` if no gradient flows to the operand. */
  readonly rule: (context: VjpContext<Params>) => (Tensor | undefined)[];
  /** Number of leading operands that are arguments; the remaining operands are the values, one per output. */
  readonly numArguments: number;
}

/** Results of differentiation in a trace, as references to nodes of the trace. */
export interface Derivatives {
  /** Cotangents of each value, by `valueKey`. A value has one cotangent per differentiation. */
  readonly cotangents: Map<string, ValueRef[]>;
  /** Values with respect to which the trace was differentiated, in order. */
  readonly primals: ValueRef[];
}

export interface TraceState {
  readonly nodes: Node[];
  /** Built-in operators by name. */
  readonly operators: OperatorTable;
  /** Definitions of the users' operators in the trace, by name. */
  readonly definitions: Map<string, Operator>;
  /**
   * Custom derivatives, by id of the `custom-gradient` node. The node returns its values unchanged; `trace` removes the
   * node at the end.
   */
  readonly gradientRules: Map<number, GradientRule>;
  readonly derivatives: Derivatives;
  /**
   * Values named by `tap`, and a function `mark` that creates a separate node for a named value. `undefined` if no taps
   * were requested.
   */
  taps: { readonly values: Map<string, Tensor>; readonly mark: (x: Tensor, name: string) => Tensor } | undefined;
  readonly mesh: Mesh;
  /** Mesh coordinates of the traced rank. If an axis is absent, the trace is valid for all ranks along the axis. */
  readonly place: MeshCoordinates;
  scope: string;
  phase: Phase;
  region: string;
  /** Number of `checkpoint` regions traced so far. */
  numRegions: number;
  /** Users' operators whose compositions are being traced, outermost first. */
  composing: readonly string[];
}

/** Creates the state of a trace without nodes. */
export const emptyTrace = (
  operators: OperatorTable,
  {
    mesh = {},
    place = {},
    composing = [],
  }: {
    readonly mesh?: Mesh | undefined;
    readonly place?: MeshCoordinates | undefined;
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

// Stack of running traces. One stack is enough, because tracing is synchronous; `trace` restores the stack even if the
// traced function throws. The stack is the only mutable module state of this package. Without it, each operator call
// would need the trace as an argument.
const running: TraceState[] = [];

/** Returns the innermost running trace; undefined outside of traced functions. */
export const runningTrace = (): TraceState | undefined => running.at(-1);

/** Example of a complete program that runs a traced function, for error messages. */
const exampleProgram =
  'import { add, evaluate, NdArray, referenceBackend } from "@skein/tensor-core"; ' +
  "console.log(await evaluate(add, referenceBackend())(NdArray.from([1, 2]), NdArray.from([3, 4])));";

/**
 * Returns the innermost running trace. Throws outside of traced functions. @param caller Name of the calling function,
 * for the message.
 */
export const currentTrace = (caller: string): TraceState => {
  const state = runningTrace();
  if (state === undefined)
    throw new ArgumentError(
      `${caller}: called outside of a traced function, so it cannot be recorded; pass the function that calls it to evaluate() or jit() with a backend, and pass arrays to the returned function, as in: ${exampleProgram}`,
    );
  return state;
};

/** Returns the suggested fix, for an error message, for an operand that is not a tensor. */
const cureOf = (value: unknown): string => {
  if (value === undefined)
    return "pass a Tensor, or check whether the traced function was called with too few arguments";
  if (isPromise(value)) return "await it before the traced function is called, and pass it as an argument";
  if (isSpec(value)) return "pass it as an argument of the traced function";
  if (ArrayBuffer.isView(value))
    return "convert it to an NdArray and pass that as an argument of the traced function, or write constant([...values]) for a few known numbers";
  if (typeof value === "number" || isNumberList(value)) return `write constant(${excerpt(value)})`;
  return "pass a Tensor: an argument of the traced function, or the result of another function";
};

/**
 * Checks that all operands belong to the running trace, and returns the trace. A function that inspects an operand
 * before emitting nodes must call this function first.
 *
 * @throws ArgumentError that describes the invalid operand and the correct code. If `numbers` is set, operands may also
 * be numbers.
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
          `${op}: ${operands.length === 1 ? "its operand" : `operand ${i + 1}`}, ${operand}, is a tensor of another trace; pass it as an argument of the traced function`,
        );
    } else if (!numbers || typeof operand !== "number")
      throw new ArgumentError(
        `${op}: ${operands.length === 1 ? "its operand" : `operand ${i + 1}`} is ${describe(operand)}, expected a Tensor; ${cureOf(operand)}`,
      );
  });
  return state;
};

/** Runs `fn` as the innermost trace. */
export const withTrace = <T>(state: TraceState, fn: () => T): T => {
  running.push(state);
  try {
    return fn();
  } finally {
    running.pop();
  }
};

/** Looks up an operator by name among the built-in operators and the users' operators of a trace. */
export const operatorIn = (state: TraceState, op: string): Operator | undefined =>
  Object.hasOwn(state.operators, op) ? state.operators[op] : state.definitions.get(op);

/** Traces `fn` as part of the composition of operator `op`. The composition must not use `op` itself. */
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
  // Copy dtype and shape: a shape rule may return an operand, which refers to the whole trace.
  const specs = operator.infer(inputs, params).map(({ dtype, shape }) => ({ dtype, shape }));
  for (const { dtype, shape } of specs) {
    requireDType(name, dtype);
    requireShape(name, shape);
  }
  return append(state, { op: name, inputs: refsOf(inputs), params, specs });
};

/**
 * Applies operator `op`: checks the operands, infers the specs of the results, and appends a node. Returns the results.
 */
export const emit = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor[] => {
  const state = requireOperands(op, inputs);
  const operator = operatorIn(state, op);
  if (operator === undefined) throw unknownOperator(op, [...Object.keys(state.operators), ...state.definitions.keys()]);
  return apply(state, operator, inputs, params);
};

/** Adds a node of a user's operator, as `emit` does, and the operator's definition to the trace. */
export const emitDefined = (operator: Operator, inputs: readonly Tensor[], params: Params): Tensor[] => {
  const state = requireOperands(operator.name, inputs);
  addDefinition(state.definitions, operator);
  return apply(state, operator, inputs, params);
};

/**
 * Returns `values` unchanged, with a custom derivative: `rule` returns the gradients of `args`. Adds no cost to the
 * graph.
 */
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

/** Adds a node as `emit` does, for operators with one result. */
export const emitOne = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor =>
  emit(op, inputs, params)[0]!;

/**
 * Runs `fn` with `name` appended to the scope path. Each node records the scope path, which names the model part that
 * emitted the node.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => scope("head", () => add(x, 1)), [{ dtype: "f32", shape: [2] }]);
 * console.log(graph.nodes.at(-1)!.scope); // head
 * ```
 */
export const scope = <T>(name: string, fn: () => T): T => {
  const state = currentTrace("scope");
  if (typeof fn !== "function")
    throw new ArgumentError(`scope: got ${describe(fn)} instead of a function; write scope("name", () => …)`);
  const outer = state.scope;
  state.scope = outer === "" ? name : `${outer}/${name}`;
  try {
    return fn();
  } finally {
    state.scope = outer;
  }
};

/**
 * Runs `fn`, and assigns its nodes to a phase of the step. Not needed for differentiation (`backward`), `exchange` of
 * `@skein/compressors` (`communication`), and optimizers and `applyUpdates` (`update`), which set their phase
 * themselves.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => inPhase("update", () => add(x, 1)), [{ dtype: "f32", shape: [2] }]);
 * console.log(graph.nodes.at(-1)!.phase); // update
 * ```
 */
export const inPhase = <T>(phase: Phase, fn: () => T): T => {
  const state = currentTrace("inPhase");
  if (!phases.includes(phase))
    throw new ArgumentError(`inPhase: the phase is ${describe(phase)}; use one of ${phases.join(", ")}`);
  const outer = state.phase;
  state.phase = phase;
  try {
    return fn();
  } finally {
    state.phase = outer;
  }
};

/** Returns the number of ranks along a mesh axis; 1 if the axis is not in the mesh. */
export const axisSize = (axis: string): number => currentTrace("axisSize").mesh[axis] ?? 1;

/**
 * Returns the coordinate of the traced rank along a mesh axis, as a plain number. Ranks may therefore trace different
 * graphs, so that each rank computes and stores only its part, such as its stage of a pipeline. All ranks must trace
 * the same collectives in the same order; ranks compare the order at compile time. A `sendReceive` is needed only on
 * the ranks in its pairs.
 *
 * `axisIndex` returns the same coordinate as a tensor, for a graph that is equal on all ranks. The coordinate along an
 * axis of one rank is 0.
 *
 * @throws ArgumentError if the trace has no coordinates. `jit` obtains coordinates from its communicators.
 * @example
 * ```ts
 * const options = { mesh: { data: 2 }, place: { data: 1 } };
 * trace((x: Tensor) => {
 *   console.log(meshCoordinate("data")); // 1
 *   return x;
 * }, [{ dtype: "f32", shape: [1] }], options);
 * ```
 */
export const meshCoordinate = (axis: string): number => {
  const { mesh, place } = currentTrace("meshCoordinate");
  const size = mesh[axis] ?? 1;
  if (size === 1) return 0;
  const position = Object.hasOwn(place, axis) ? place[axis] : undefined;
  if (position === undefined)
    throw new ArgumentError(
      `meshCoordinate: the trace is for any of the ${size} ranks along axis "${axis}"; trace for one rank, by { communicators } or { place: { ${axis}: 0 } }, or write axisIndex("${axis}"), a tensor whose value differs between ranks at run time`,
    );
  return position;
};

/** Throws ArgumentError if a mesh coordinate is outside the mesh. */
export const requireCoordinates = (caller: string, mesh: Mesh, place: MeshCoordinates): void => {
  for (const [axis, position] of Object.entries(place)) {
    const size = mesh[axis] ?? 1;
    if (!Number.isInteger(position) || position < 0 || position >= size)
      throw new ArgumentError(
        `${caller}: place ${describe(position)} along axis "${axis}" is not one of its ${size} ranks; ${Object.hasOwn(mesh, axis) ? `use 0 to ${size - 1}` : `pass the number of ranks, as in { mesh: { ${axis}: 2 } }`}`,
      );
  }
};
