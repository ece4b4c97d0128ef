import { ArgumentError, InvariantError } from "../errors.ts";
import type { Node, Params } from "./graph.ts";
import type { OperatorTable } from "./operator.ts";
import { Tensor } from "./tensor.ts";

/** Names of the mesh axes and how many ranks lie along each. */
export type Mesh = { readonly [axis: string]: number };

export interface TraceState {
  readonly nodes: Node[];
  readonly operators: OperatorTable;
  readonly mesh: Mesh;
  scope: string;
}

// Tracing is synchronous, so one stack of running traces is enough; `trace` restores it even when the traced function throws.
// It is the only mutable state of a module in this package: without it each operator call would carry the trace by hand.
const running: TraceState[] = [];

export const currentTrace = (): TraceState => {
  const state = running.at(-1);
  if (state === undefined)
    throw new ArgumentError(
      "operators work on symbolic tensors inside a traced function; wrap the code in jit(fn, backend) or evaluate(fn)",
    );
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

/** Apply operator `op`: check its inputs, infer its outputs, append the node. */
export const emit = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor[] => {
  const state = currentTrace();
  const operator = state.operators[op];
  if (operator === undefined) throw new InvariantError(`operator "${op}" is not in the operator table`);
  for (const input of inputs) {
    if (input.trace !== state)
      throw new ArgumentError(`${op}: a tensor of another trace was used; pass it in as an argument of the traced function`);
  }
  // Plain data: a shape rule may return an operand itself, and with it the whole trace.
  const specs = operator.infer(inputs, params).map(({ dtype, shape }) => ({ dtype, shape }));
  const id = state.nodes.length;
  state.nodes.push({ id, op, inputs: inputs.map((input) => input.ref), params, specs, scope: state.scope });
  return specs.map((spec, output) => new Tensor(spec, { node: id, output }, state));
};

/** `emit` for operators with one output. */
export const emitOne = (op: string, inputs: readonly Tensor[], params: Params = {}): Tensor => emit(op, inputs, params)[0]!;

/** Run `fn` with `name` appended to the scope path, so that its nodes say which part of the model they are. */
export const scope = <T>(name: string, fn: () => T): T => {
  const state = currentTrace();
  const outer = state.scope;
  state.scope = outer === "" ? name : `${outer}/${name}`;
  try {
    return fn();
  } finally {
    state.scope = outer;
  }
};

/** Number of ranks along a mesh axis; an axis that the mesh does not name has one rank. */
export const axisSize = (axis: string): number => currentTrace().mesh[axis] ?? 1;
