import { describe } from "../describe.ts";
import { isFloat } from "../dtype.ts";
import { ArgumentError, InvariantError, OperatorError, ShapeError } from "../errors.ts";
import { add, full } from "../functions/elementwise.ts";
import { currentTrace, inPhase, operatorIn, scope } from "../graph/emit.ts";
import { valueKey } from "../graph/graph.ts";
import { isUsersOperator } from "../graph/operator.ts";
import { Tensor } from "../graph/tensor.ts";
import { formatSpec, sameSpec } from "../shape.ts";

/**
 * One cotangent for each output, of its dtype and shape: nothing is stretched, since the gradient of a stretch would be
 * a sum.
 */
const checkCotangents = (outputs: readonly Tensor[], cotangents: readonly Tensor[]): void => {
  if (cotangents.length !== outputs.length)
    throw new ShapeError(
      "pullback",
      `${cotangents.length} cotangents were given for ${outputs.length} results; give one for each`,
    );
  outputs.forEach((output, i) => {
    const cotangent = cotangents[i]!;
    if (!(cotangent instanceof Tensor) || !sameSpec(cotangent, output))
      throw new ShapeError(
        "pullback",
        `cotangent ${i} is ${cotangent instanceof Tensor ? formatSpec(cotangent) : describe(cotangent)}, its result ${formatSpec(output)}; a cotangent has the dtype and shape of its result, broadcastTo() or cast() it`,
      );
  });
};

/**
 * Reverse-mode differentiation as a graph transformation: append the nodes that carry `cotangents` of `outputs` back
 * to `wrt`. Walks the trace once, newest node first, so gradients of late layers are ready first.
 *
 * Cost: about twice the forward flops. Returns zeros for tensors that the outputs do not depend on.
 *
 * @param taps values on the way whose cotangents are returned behind those of `wrt`; what flows to them flows on.
 *
 * @throws ShapeError for a cotangent whose dtype or shape is not that of its output.
 */
export const pullBack = (
  outputs: readonly Tensor[],
  cotangents: readonly Tensor[],
  wrt: readonly Tensor[],
  taps: readonly Tensor[] = [],
): Tensor[] => inPhase("backward", () => walkBack(outputs, cotangents, wrt, taps));

/** Where the derivative of what lies in `scope` lies, within the scope that runs, which is named but once. */
const backwardScope = (path: string, running: string): string => {
  const own =
    path === running ? "" : running !== "" && path.startsWith(`${running}/`) ? path.slice(running.length + 1) : path;
  return own === "" ? "backward" : `${own}/backward`;
};

const walkBack = (
  outputs: readonly Tensor[],
  cotangents: readonly Tensor[],
  wrt: readonly Tensor[],
  taps: readonly Tensor[],
): Tensor[] => {
  const state = currentTrace("pullback");
  checkCotangents(outputs, cotangents);
  const asked = [...wrt, ...taps.filter(({ dtype }) => isFloat(dtype))];
  const active = new Set(asked.map((tensor) => valueKey(tensor.ref)));
  const first = Math.min(...asked.map((tensor) => tensor.ref.node));
  const last = Math.max(...outputs.map((tensor) => tensor.ref.node));
  for (const node of state.nodes.slice(first, last + 1)) {
    if (!node.inputs.some((ref) => active.has(valueKey(ref))) || operatorIn(state, node.op)?.stopsGradient === true)
      continue;
    node.specs.forEach((spec, output) => {
      if (isFloat(spec.dtype)) active.add(valueKey({ node: node.id, output }));
    });
  }

  const gradients = new Map<string, Tensor>();
  const accumulate = (key: string, gradient: Tensor): void => {
    const sum = gradients.get(key);
    gradients.set(key, sum === undefined ? gradient : add(sum, gradient));
  };
  outputs.forEach((output, i) => {
    if (active.has(valueKey(output.ref))) accumulate(valueKey(output.ref), cotangents[i]!);
  });

  const { derivatives } = state;
  derivatives.primals.push(...wrt.map((tensor) => tensor.ref));
  const targets = new Set(wrt.map((tensor) => valueKey(tensor.ref)));
  const tapped = new Map<string, Tensor | undefined>(taps.map((tensor) => [valueKey(tensor.ref), undefined]));
  for (let id = last; id >= first; id--) {
    const node = state.nodes[id]!;
    const keys = node.specs.map((_, output) => valueKey({ node: id, output }));
    if (!keys.some((key) => gradients.has(key))) continue;
    for (const key of keys) {
      const gradient = gradients.get(key);
      if (gradient === undefined) continue;
      const known = derivatives.cotangents.get(key);
      if (known === undefined) derivatives.cotangents.set(key, [gradient.ref]);
      else known.push(gradient.ref);
      if (tapped.has(key)) tapped.set(key, gradient);
    }
    if (keys.some((key) => targets.has(key)) || !node.inputs.some((ref) => active.has(valueKey(ref)))) continue;
    const custom = state.gradientRules.get(id);
    if (custom !== undefined && node.inputs.slice(custom.numArguments).some((ref) => active.has(valueKey(ref))))
      throw new ArgumentError(
        `a function with a custom gradient${node.scope === "" ? "" : ` (used in ${node.scope})`} reads a tensor that is differentiated and none of its arguments, so its rule cannot say what flows there; pass the tensor as an argument, or stopGradient() it`,
      );
    const rule = custom?.rule ?? operatorIn(state, node.op)!.vjp;
    if (rule === undefined) {
      throw new ArgumentError(
        `${node.op} has no gradient rule${node.scope === "" ? "" : ` (used in ${node.scope})`}; wrap its input in stopGradient() if none should flow`,
      );
    }
    const inputs = node.inputs.map((ref) => new Tensor(state.nodes[ref.node]!.specs[ref.output]!, ref, state));
    const flowing = scope(backwardScope(node.scope, state.scope), () =>
      rule({
        inputs,
        outputs: node.specs.map((spec, output) => new Tensor(spec, { node: id, output }, state)),
        cotangents: node.specs.map((spec, output) => gradients.get(keys[output]!) ?? full(spec.shape, 0, spec.dtype)),
        params: node.params,
      }),
    );
    const fault = (what: string): Error =>
      isUsersOperator(node.op) ? new OperatorError(node.op, what) : new InvariantError(`${node.op}: ${what}`);
    if (!Array.isArray(flowing) || flowing.length !== inputs.length)
      throw fault(
        `its gradient rule gave ${Array.isArray(flowing) ? `${flowing.length} entries` : String(flowing)} for ${inputs.length} operands; it returns a list with one for each, undefined where nothing flows`,
      );
    node.inputs.forEach((ref, i) => {
      const gradient = flowing[i];
      if (gradient === undefined || !active.has(valueKey(ref))) return;
      if (!(gradient instanceof Tensor) || !sameSpec(gradient, inputs[i]!))
        throw fault(
          `its gradient rule gave ${gradient instanceof Tensor ? formatSpec(gradient) : `no tensor but ${String(gradient)}`} for operand ${i} of ${formatSpec(inputs[i]!)}; both must be alike`,
        );
      accumulate(valueKey(ref), gradient);
    });
    // The cotangent of this node is fully used; only those of `wrt` are kept.
    for (const key of keys) gradients.delete(key);
  }
  const carried = (tensor: Tensor): Tensor | undefined =>
    gradients.get(valueKey(tensor.ref)) ?? tapped.get(valueKey(tensor.ref));
  return [...wrt, ...taps].map((tensor) => carried(tensor) ?? full(tensor.shape, 0, tensor.dtype));
};
