import { describe } from "../describe.ts";
import { isFloat } from "../dtype.ts";
import { ArgumentError, InvariantError, OperatorError, ShapeError } from "../errors.ts";
import { add, full } from "../functions/elementwise.ts";
import { currentTrace, inPhase, operatorIn, scope } from "../graph/emit.ts";
import { valueKey } from "../graph/graph.ts";
import { isUserOperator } from "../graph/operator.ts";
import { Tensor } from "../graph/tensor.ts";
import { formatSpec, sameSpec } from "../shape.ts";

/**
 * Checks that each output has one cotangent of the same dtype and shape. Cotangents are not broadcast, because the
 * gradient of a broadcast would be a sum.
 */
const checkCotangents = (outputs: readonly Tensor[], cotangents: readonly Tensor[]): void => {
  if (cotangents.length !== outputs.length)
    throw new ShapeError(
      "pullback",
      `${cotangents.length} cotangents were given for ${outputs.length} results; pass one per result`,
    );
  outputs.forEach((output, i) => {
    const cotangent = cotangents[i]!;
    if (!(cotangent instanceof Tensor) || !sameSpec(cotangent, output))
      throw new ShapeError(
        "pullback",
        `cotangent ${i} is ${cotangent instanceof Tensor ? formatSpec(cotangent) : describe(cotangent)}, its result ${formatSpec(output)}; a cotangent must have the dtype and shape of its result: use broadcastTo() or cast()`,
      );
  });
};

/**
 * Reverse-mode differentiation as a graph transformation: appends the nodes that propagate `cotangents` of `outputs`
 * back to `wrt`. Visits the nodes of the trace once, in reverse order, so gradients of the last layers are computed
 * first.
 *
 * Cost: about twice the forward flops. Returns zeros for tensors that the outputs do not depend on.
 *
 * @param taps Intermediate values whose cotangents are also returned, after the cotangents of `wrt`. Propagation
 * continues through these values.
 *
 * @throws ShapeError if the dtype or shape of a cotangent differs from its output.
 */
export const pullBack = (
  outputs: readonly Tensor[],
  cotangents: readonly Tensor[],
  wrt: readonly Tensor[],
  taps: readonly Tensor[] = [],
): Tensor[] => inPhase("backward", () => walkBack(outputs, cotangents, wrt, taps));

/**
 * Returns the scope of the nodes that differentiate nodes of scope `path`: `path`, relative to the running scope, with
 * `backward` appended.
 */
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
  const requested = [...wrt, ...taps.filter(({ dtype }) => isFloat(dtype))];
  const active = new Set(requested.map((tensor) => valueKey(tensor.ref)));
  const first = Math.min(...requested.map((tensor) => tensor.ref.node));
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
        `a function with a custom gradient${node.scope === "" ? "" : ` (used in ${node.scope})`} reads a differentiated tensor that is not one of its arguments, so its rule cannot return a gradient for it; pass the tensor as an argument, or wrap it in stopGradient()`,
      );
    const rule = custom?.rule ?? operatorIn(state, node.op)!.vjp;
    if (rule === undefined) {
      throw new ArgumentError(
        `${node.op} has no gradient rule${node.scope === "" ? "" : ` (used in ${node.scope})`}; wrap its input in stopGradient() if no gradient should flow`,
      );
    }
    const inputs = node.inputs.map((ref) => new Tensor(state.nodes[ref.node]!.specs[ref.output]!, ref, state));
    const operandGradients = scope(backwardScope(node.scope, state.scope), () =>
      rule({
        inputs,
        outputs: node.specs.map((spec, output) => new Tensor(spec, { node: id, output }, state)),
        cotangents: node.specs.map((spec, output) => gradients.get(keys[output]!) ?? full(spec.shape, 0, spec.dtype)),
        params: node.params,
      }),
    );
    const fault = (what: string): Error =>
      isUserOperator(node.op) ? new OperatorError(node.op, what) : new InvariantError(`${node.op}: ${what}`);
    if (!Array.isArray(operandGradients) || operandGradients.length !== inputs.length)
      throw fault(
        `its gradient rule returned ${Array.isArray(operandGradients) ? `${operandGradients.length} entries` : String(operandGradients)} for ${inputs.length} operands; return a list with one entry per operand, undefined if no gradient flows`,
      );
    node.inputs.forEach((ref, i) => {
      const gradient = operandGradients[i];
      if (gradient === undefined || !active.has(valueKey(ref))) return;
      if (!(gradient instanceof Tensor) || !sameSpec(gradient, inputs[i]!))
        throw fault(
          `its gradient rule returned ${gradient instanceof Tensor ? formatSpec(gradient) : `${String(gradient)} instead of a tensor`} for operand ${i} of ${formatSpec(inputs[i]!)}; dtype and shape of both must be equal`,
        );
      accumulate(valueKey(ref), gradient);
    });
    // The cotangents of this node are no longer needed, except the cotangents of `wrt`.
    for (const key of keys) gradients.delete(key);
  }
  const cotangentOf = (tensor: Tensor): Tensor | undefined =>
    gradients.get(valueKey(tensor.ref)) ?? tapped.get(valueKey(tensor.ref));
  return [...wrt, ...taps].map((tensor) => cotangentOf(tensor) ?? full(tensor.shape, 0, tensor.dtype));
};
