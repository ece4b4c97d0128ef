import { vjp } from "./autodiff/vjp.ts";
import { dtypes } from "./dtype.ts";
import { ArgumentError, OperatorError } from "./errors.ts";
import { compose, traceComposition } from "./tracing/composition.ts";
import { graphCost } from "./inspection/cost.ts";
import { addDefinitions } from "./graph/definitions.ts";
import { composing, emitDefined, type Mesh, type MeshPlace } from "./graph/emit.ts";
import { type Graph, type Params, type ParamValue, specOf } from "./graph/graph.ts";
import { addDefinition, type Cost, type Operator, type ReferenceArray, type VjpContext } from "./graph/operator.ts";
import { Tensor } from "./graph/tensor.ts";
import { interpretWorld } from "./reference/interpret.ts";
import { byteLength, elementCount, type TensorSpec } from "./shape.ts";

/** One thing for each result, with as many of them as the rule or composition is known to return. */
type PerResult<Results extends readonly unknown[], Item> = { readonly [K in keyof Results]: Item };

/**
 * What a user tells of an operator. It needs `composition`, or `infer` and `reference`; what else is missing follows
 * from the composition.
 */
export interface OperatorDefinition<P extends Params, Results extends readonly unknown[]> {
  /** `owner/name`, such as `acme/mish`. One definition per name and graph. */
  readonly name: string;
  /** How many operands it takes. Default: any number. */
  readonly arity?: number;
  /** Shape rule: dtypes and shapes of the results. Throws for operands that do not fit. */
  readonly infer?: (inputs: readonly TensorSpec[], params: P) => PerResult<Results, TensorSpec>;
  /**
   * The operator as a traced function of others: what a backend runs that has no kernel for it. May hold collectives
   * and users' operators, not itself.
   */
  readonly composition?: (inputs: readonly Tensor[], params: P) => PerResult<Results, Tensor>;
  /**
   * Traced gradient rule: one entry per operand, of its dtype and shape, `undefined` where nothing flows. Default: that
   * of the composition.
   */
  readonly vjp?: (context: VjpContext<P>) => readonly (Tensor | undefined)[];
  /**
   * Work from shapes alone. Default: flops of the composition, or one for each element of the results; each operand
   * read and each result written once.
   */
  readonly cost?: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  /** f64, slow and right: the data of each result. Default: the composition in f64. */
  readonly reference?: (
    inputs: readonly ReferenceArray[],
    params: P,
    outputs: readonly TensorSpec[],
  ) => readonly Float64Array[];
}

/** A user's operator: call it on symbolic tensors inside of a traced function. */
export interface DefinedOperator<P extends Params, Results extends readonly unknown[]> {
  (inputs: readonly Tensor[], ...params: Params extends P ? [params?: P] : [params: P]): PerResult<Results, Tensor>;
  /** What the system knows of it; `operator.name` is what kernels are given under. */
  readonly operator: Operator;
}

const functions = ["infer", "composition", "vjp", "cost", "reference"] as const;

const checkDefinition = (definition: Partial<OperatorDefinition<never, readonly unknown[]>>): void => {
  const { name, arity, infer, composition, reference } = definition ?? {};
  if (typeof name !== "string" || !/^[^\s/]+(\/[^\s/]+)+$/.test(name))
    throw new ArgumentError(
      `an operator was named ${JSON.stringify(name)}; users' operators are named owner/name, such as "acme/mish", so that they never meet those of Skein`,
    );
  for (const key of functions)
    if (definition[key] !== undefined && typeof definition[key] !== "function")
      throw new OperatorError(name, `${key} is ${String(definition[key])}; it is a function, or left out`);
  if (arity !== undefined && !(Number.isInteger(arity) && arity >= 0))
    throw new OperatorError(name, `arity is ${String(arity)}; it is a whole number of operands, or left out`);
  if (composition === undefined && (infer === undefined || reference === undefined))
    throw new OperatorError(
      name,
      `it has no composition and no ${infer === undefined ? "shape rule (infer)" : "reference"}; give a composition of other operators, or both infer and reference`,
    );
};

/** A copy of what is plain data. */
const plainParam = (op: string, path: string, value: unknown, outer: readonly unknown[] = []): ParamValue => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value) && !Object.is(value, -0)) return value;
  if (outer.includes(value))
    throw new OperatorError(op, `parameter ${path} holds itself; parameters are plain data that JSON can carry`);
  const inner = [...outer, value];
  if (Array.isArray(value)) return value.map((item, i) => plainParam(op, `${path}.${i}`, item, inner));
  if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value) as null)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, plainParam(op, `${path}.${key}`, item, inner)]),
    );
  }
  const what =
    typeof value === "number"
      ? `${Object.is(value, -0) ? "-0" : value}`
      : value instanceof Tensor
        ? "a tensor"
        : typeof value;
  throw new OperatorError(
    op,
    `parameter ${path} is ${what}; parameters are plain data that JSON can carry (${
      typeof value === "number"
        ? "use encodeNumber()"
        : value instanceof Tensor
          ? "pass tensors as operands"
          : "numbers, strings, booleans, lists and records"
    })`,
  );
};

const checkedSpecs = (op: string, specs: unknown): TensorSpec[] => {
  const isSpec = (spec: Partial<TensorSpec> | null | undefined): boolean =>
    typeof spec === "object" &&
    dtypes.includes(spec?.dtype as never) &&
    Array.isArray(spec?.shape) &&
    spec.shape.every((size: unknown) => Number.isSafeInteger(size) && (size as number) >= 0);
  if (Array.isArray(specs) && specs.every(isSpec))
    return (specs as TensorSpec[]).map(({ dtype, shape }) => ({ dtype, shape: [...shape] }));
  throw new OperatorError(
    op,
    `its shape rule (infer) gave ${JSON.stringify(specs) ?? String(specs)}; it returns a list with { dtype, shape } of each result, shapes of whole numbers of 0 or more`,
  );
};

const bytesOf = (specs: readonly TensorSpec[]): number => specs.reduce((sum, spec) => sum + byteLength(spec), 0);

const completed = (definition: OperatorDefinition<Params, readonly unknown[]>): Operator => {
  const { name, infer, composition, vjp: rule, cost, reference } = definition;
  const composed = (inputs: readonly TensorSpec[], params: Params): Graph => traceComposition(operator, inputs, params);
  const operator: Operator = {
    name,
    infer: (inputs, params) => {
      // Specs alone, as when a graph is checked later: a shape rule traces nothing.
      const specs = inputs.map(({ dtype, shape }) => ({ dtype, shape }));
      if (infer !== undefined) return checkedSpecs(name, infer(specs, params));
      const graph = composed(specs, params);
      return graph.outputs.map((ref) => specOf(graph, ref));
    },
    cost:
      cost ??
      ((inputs, outputs, params) => ({
        flops:
          composition === undefined
            ? outputs.reduce((sum, { shape }) => sum + elementCount(shape), 0)
            : graphCost(composed(inputs, params)).flops,
        bytesRead: bytesOf(inputs),
        bytesWritten: bytesOf(outputs),
      })),
    reference:
      (reference as Operator["reference"] | undefined) ??
      ((inputs, params) => {
        const specs = inputs.map(({ spec }) => spec);
        return interpretWorld(composed(specs, params), [inputs])[0]!.map(({ data }) => data);
      }),
    ...(composition !== undefined && { composition: composition as Operator["composition"] & object }),
    ...(reference === undefined && { referenceIsComposition: true }),
  };
  if (rule !== undefined) return Object.assign(operator, { vjp: rule });
  if (composition === undefined) return operator;
  return Object.assign(operator, {
    vjp: ({ inputs, cotangents, params }: VjpContext<Params>) =>
      composing(name, () =>
        vjp((operands: readonly Tensor[]) => compose(operator, operands, params), inputs).pullback(cotangents),
      ),
  });
};

/**
 * Define an operator of one's own: a function of tensors with a shape rule, a derivative, a cost and an f64 reference,
 * that every pass and backend treats as it does ours. A backend runs its kernel where it was given one
 * (`createCpuBackend({ kernels })`, `createWebGpuBackend({ kernels })`), and the composition where not.
 *
 * Promises that passes rely on: results follow from operands and parameters alone, so equal nodes are merged and unread
 * ones dropped; results are new values, neither views of operands nor written over them.
 *
 * @returns a function of a list of tensors and of plain parameters, for use inside of traced functions. Graphs carry
 * the definition along; one that was saved as data gets it back by `withOperators`.
 * @throws ArgumentError for a name that is not `owner/name`, OperatorError for a definition that lacks something; the
 * function throws OperatorError where a part of the definition breaks what is said here, also later, when graphs are
 * compiled.
 * @example
 * const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x, tanh(softplus(x)))] });
 * const f = jit((x: Tensor) => mish([x])[0], backend);
 */
export const defineOperator = <const Results extends readonly unknown[], P extends Params = Params>(
  definition: OperatorDefinition<P, Results>,
): DefinedOperator<P, Results> => {
  checkDefinition(definition as never);
  const operator = completed(definition as never);
  const { name } = operator;
  const { arity } = definition;
  const call = (inputs: readonly Tensor[], params: Params = {}): readonly Tensor[] => {
    if (!Array.isArray(inputs))
      throw new OperatorError(
        name,
        `its operands were given as ${describe(inputs)}; give a list of tensors, such as [x]`,
      );
    if (arity !== undefined && inputs.length !== arity)
      throw new OperatorError(name, `it was given ${inputs.length} operands; it takes ${arity}`);
    const plain = plainParam(name, "params", params);
    if (typeof plain !== "object" || plain === null || Array.isArray(plain))
      throw new OperatorError(
        name,
        `its parameters were given as ${JSON.stringify(plain)}; give a record, such as { limit: 1 }, or nothing`,
      );
    return emitDefined(operator, inputs as readonly Tensor[], plain as Params);
  };
  return Object.assign(call, { operator }) as unknown as DefinedOperator<P, Results>;
};

const describe = (value: unknown): string => (value instanceof Tensor ? "a tensor" : String(value));

/**
 * Give a graph that was saved or posted as data the definitions of its users' operators back.
 *
 * @param mesh with `place`, ranks along each mesh axis, and the rank's place among them, as in `trace`; for
 * compositions that hold collectives or ask for their place.
 */
export const withOperators = (
  graph: Graph,
  operators: readonly { readonly operator: Operator }[],
  { mesh = {}, place = {} }: { readonly mesh?: Mesh; readonly place?: MeshPlace } = {},
): Graph => {
  const added = new Map<string, Operator>();
  for (const defined of operators) {
    if (typeof defined?.operator?.name !== "string")
      throw new ArgumentError(
        `withOperators was given ${String(defined)}; give a list of what defineOperator returned`,
      );
    addDefinition(added, defined.operator);
  }
  return addDefinitions(graph, { operators: added, mesh, place });
};
