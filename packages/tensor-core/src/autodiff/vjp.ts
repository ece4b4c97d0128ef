import { describe } from "../describe.ts";
import { isFloat } from "../dtype.ts";
import { ArgumentError, InvariantError, OperatorError, ShapeError } from "../errors.ts";
import { add, full, identity } from "../functions/elementwise.ts";
import { currentTrace, inPhase, operatorIn, requireOperands, scope } from "../graph/emit.ts";
import { valueKey } from "../graph/graph.ts";
import { isUsersOperator } from "../graph/operator.ts";
import { Tensor } from "../graph/tensor.ts";
import { formatShape, formatSpec, sameSpec } from "../shape.ts";
import { flattenTree, leafPaths, leavesAlong, mapTree, unflattenTree } from "../tree.ts";

/** One cotangent for each output, of its dtype and shape: nothing is stretched, since the gradient of a stretch would be a sum. */
const checkCotangents = (outputs: readonly Tensor[], cotangents: readonly Tensor[]): void => {
  if (cotangents.length !== outputs.length)
    throw new ShapeError("pullback", `${cotangents.length} cotangents were given for ${outputs.length} results; give one for each`);
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
 * @throws ShapeError for a cotangent whose dtype or shape is not that of its output.
 */
export const pullBack = (outputs: readonly Tensor[], cotangents: readonly Tensor[], wrt: readonly Tensor[]): Tensor[] =>
  inPhase("backward", () => walkBack(outputs, cotangents, wrt));

const walkBack = (outputs: readonly Tensor[], cotangents: readonly Tensor[], wrt: readonly Tensor[]): Tensor[] => {
  const state = currentTrace("pullback");
  checkCotangents(outputs, cotangents);
  const active = new Set(wrt.map((tensor) => valueKey(tensor.ref)));
  const first = Math.min(...wrt.map((tensor) => tensor.ref.node));
  const last = Math.max(...outputs.map((tensor) => tensor.ref.node));
  for (const node of state.nodes.slice(first, last + 1)) {
    if (!node.inputs.some((ref) => active.has(valueKey(ref))) || operatorIn(state, node.op)?.stopsGradient === true) continue;
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

  const targets = new Set(wrt.map((tensor) => valueKey(tensor.ref)));
  for (let id = last; id >= first; id--) {
    const node = state.nodes[id]!;
    const keys = node.specs.map((_, output) => valueKey({ node: id, output }));
    if (keys.some((key) => targets.has(key)) || !node.inputs.some((ref) => active.has(valueKey(ref)))) continue;
    if (!keys.some((key) => gradients.has(key))) continue;
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
    const flowing = scope(node.scope === "" ? "backward" : `${node.scope}/backward`, () =>
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
  return wrt.map((tensor) => gradients.get(valueKey(tensor.ref)) ?? full(tensor.shape, 0, tensor.dtype));
};

/**
 * Evaluate `fn(primals)` and return its vector-Jacobian product.
 *
 * @returns `value`, and `pullback(cotangents)`: a tree like `primals`, valid inside the same trace. Cotangents are a tree like `value`, each leaf of
 * its dtype and shape; `pullback` throws ShapeError or ArgumentError for others.
 */
export const vjp = <P, Result>(
  fn: (primals: P) => Result,
  primals: P,
  ...rest: readonly never[]
): { readonly value: Result; readonly pullback: (cotangents: Result) => P } => {
  requireFunction("vjp", fn);
  if (rest.length > 0)
    throw new ArgumentError(
      `vjp: ${1 + rest.length} primals were given; it takes one, which may be a list or a plain object: vjp(([a, b]) => …, [a, b])`,
    );
  requireOperands("vjp", flattenTree(primals).leaves);
  // Fresh identities: whatever `fn` closes over counts as constant, even when it was computed from the same primals.
  const own = mapTree(primals, (leaf: Tensor) => identity(leaf)) as P;
  const value = fn(own);
  const { leaves: outputs, structure } = flattenTree<Tensor>(value);
  requireOperands("the result of what is differentiated", outputs);
  const flat = flattenTree<Tensor>(own);
  return {
    value,
    pullback: (cotangents) => {
      const leaves = leavesAlong<Tensor>(structure, cotangents);
      if (leaves === undefined)
        throw new ArgumentError(
          `pullback was given cotangents [${leafPaths(cotangents).join(", ")}] for results [${leafPaths(value).join(", ")}]; both trees must have the same structure`,
        );
      return unflattenTree<P>(flat.structure, pullBack(outputs, leaves, flat.leaves));
    },
  };
};

const requireFunction = (caller: string, fn: unknown): void => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `${caller}: ${describe(fn)} was given where a function is due; pass the function itself, and its arguments to what is returned: ${caller === "vjp" ? "vjp(fn, primals)" : `${caller}(fn)(params)`}`,
    );
};

const scalarLoss = (loss: Tensor): Tensor => {
  if (!(loss instanceof Tensor))
    throw new ArgumentError(
      `valueAndGrad needs a function that returns its loss, a Tensor, but it returned ${loss === undefined ? "nothing" : describe(loss)}; return the loss`,
    );
  if (loss.shape.length !== 0)
    throw new ArgumentError(`valueAndGrad needs a scalar loss, got shape ${formatShape(loss.shape)}; reduce it with mean() or sum()`);
  if (!isFloat(loss.dtype))
    throw new ArgumentError(
      `valueAndGrad needs a loss of real numbers, got dtype ${loss.dtype}, through which no gradient flows; cast() what it is made of`,
    );
  return loss;
};

/**
 * Turn a scalar function into one that also returns its gradient with respect to the first argument.
 *
 * @example const [loss, gradients] = valueAndGrad(model.loss)(params, batch);
 */
export const valueAndGrad = <P, Rest extends readonly unknown[]>(
  fn: (params: P, ...rest: Rest) => Tensor,
): ((params: P, ...rest: Rest) => [Tensor, P]) => {
  requireFunction("valueAndGrad", fn);
  return (params, ...rest) => {
    const { value, pullback } = vjp((own: P) => scalarLoss(fn(own, ...rest)), params);
    return [value, pullback(full([], 1, value.dtype))];
  };
};

/** As `valueAndGrad`, for a function that returns its loss and a tree of further results through which no gradient flows. */
export const valueAndGradWithAux = <P, Aux, Rest extends readonly unknown[]>(
  fn: (params: P, ...rest: Rest) => readonly [Tensor, Aux],
): ((params: P, ...rest: Rest) => [Tensor, Aux, P]) => {
  requireFunction("valueAndGradWithAux", fn);
  return (params, ...rest) => {
    let aux: Aux | undefined;
    const { value, pullback } = vjp((own: P) => {
      const result = fn(own, ...rest);
      if (!Array.isArray(result))
        throw new ArgumentError(`valueAndGradWithAux needs a function that returns [loss, aux], but it returned ${describe(result)}`);
      const [loss, further] = result as readonly [Tensor, Aux];
      aux = further;
      return scalarLoss(loss);
    }, params);
    return [value, aux as Aux, pullback(full([], 1, value.dtype))];
  };
};
