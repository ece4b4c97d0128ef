import { vjp } from "./autodiff/vjp.ts";
import { dtypes } from "./dtype.ts";
import { ArgumentError, OperatorError } from "./errors.ts";
import { compose, traceComposition } from "./tracing/composition.ts";
import { graphCost } from "./inspection/cost.ts";
import { addDefinitions } from "./graph/definitions.ts";
import { composing, emitDefined, type Mesh, type MeshCoordinates } from "./graph/emit.ts";
import { type Graph, type Params, type ParamValue, specOf } from "./graph/graph.ts";
import { addDefinition, type Cost, type Operator, type ReferenceArray, type VjpContext } from "./graph/operator.ts";
import { Tensor } from "./graph/tensor.ts";
import { interpretWorld } from "./reference/interpret.ts";
import { byteLength, elementCount, type TensorSpec } from "./shape.ts";

/**
 * List with one item per result of an operator. The list length is known to the compiler if the definition returns a
 * tuple.
 */
type PerResult<Results extends readonly unknown[], Item> = { readonly [K in keyof Results]: Item };

/**
 * Definition of a user's operator. Requires `composition`, or both `infer` and `reference`. Other absent fields are
 * derived from the composition.
 */
export interface OperatorDefinition<P extends Params, Results extends readonly unknown[]> {
  /** Operator name `owner/name`, such as `acme/mish`. A graph may contain only one definition per name. */
  readonly name: string;
  /** Number of operands. Default: any number. */
  readonly arity?: number;
  /** Shape rule: dtype and shape of each result. Throws if the operands are invalid. */
  readonly infer?: (inputs: readonly TensorSpec[], params: P) => PerResult<Results, TensorSpec>;
  /**
   * Traced function that computes the operator from other operators. A backend without a kernel for this operator runs
   * the composition. May contain collectives and users' operators, except itself.
   */
  readonly composition?: (inputs: readonly Tensor[], params: P) => PerResult<Results, Tensor>;
  /**
   * Traced gradient rule: one entry per operand, with the operand's dtype and shape; `undefined` if no gradient flows
   * to the operand. Default: gradient of the composition.
   */
  readonly vjp?: (context: VjpContext<P>) => readonly (Tensor | undefined)[];
  /**
   * Cost computed from shapes alone. Default: flops of the composition, or one flop per result element; each operand is
   * read once and each result written once.
   */
  readonly cost?: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  /** Slow, exact reference implementation in f64; returns the data of each result. Default: the composition in f64. */
  readonly reference?: (
    inputs: readonly ReferenceArray[],
    params: P,
    outputs: readonly TensorSpec[],
  ) => readonly Float64Array[];
}

/** A user's operator: call it on symbolic tensors inside a traced function. */
export interface DefinedOperator<P extends Params, Results extends readonly unknown[]> {
  (inputs: readonly Tensor[], ...params: Params extends P ? [params?: P] : [params: P]): PerResult<Results, Tensor>;
  /** Operator record for passes and backends. Kernels are registered under `operator.name`. */
  readonly operator: Operator;
}

const functions = ["infer", "composition", "vjp", "cost", "reference"] as const;

const checkDefinition = (definition: Partial<OperatorDefinition<never, readonly unknown[]>>): void => {
  const { name, arity, infer, composition, reference } = definition ?? {};
  if (typeof name !== "string" || !/^[^\s/]+(\/[^\s/]+)+$/.test(name))
    throw new ArgumentError(
      `an operator was named ${JSON.stringify(name)}; users' operators are named owner/name, such as "acme/mish", so that they never collide with operators of Skein`,
    );
  for (const key of functions)
    if (definition[key] !== undefined && typeof definition[key] !== "function")
      throw new OperatorError(name, `${key} is ${String(definition[key])}; pass a function, or leave it out`);
  if (arity !== undefined && !(Number.isInteger(arity) && arity >= 0))
    throw new OperatorError(name, `arity is ${String(arity)}; pass a whole number of operands, or leave it out`);
  if (composition === undefined && (infer === undefined || reference === undefined))
    throw new OperatorError(
      name,
      `it has no composition and no ${infer === undefined ? "shape rule (infer)" : "reference"}; give a composition of other operators, or both infer and reference`,
    );
};

/**
 * Checks that a parameter is plain data, and returns a copy. Throws OperatorError if the parameter contains other
 * values.
 */
const plainParam = (op: string, path: string, value: unknown, outer: readonly unknown[] = []): ParamValue => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value) && !Object.is(value, -0)) return value;
  if (outer.includes(value))
    throw new OperatorError(
      op,
      `parameter ${path} contains itself; parameters must be plain data that JSON can represent`,
    );
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
    `parameter ${path} is ${what}; parameters must be plain data that JSON can represent (${
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
    `its shape rule (infer) returned ${JSON.stringify(specs) ?? String(specs)}; it must return a list with { dtype, shape } of each result, with sizes that are whole numbers of 0 or more`,
  );
};

const bytesOf = (specs: readonly TensorSpec[]): number => specs.reduce((sum, spec) => sum + byteLength(spec), 0);

const completeDefinition = (definition: OperatorDefinition<Params, readonly unknown[]>): Operator => {
  const { name, infer, composition, vjp: rule, cost, reference } = definition;
  const composed = (inputs: readonly TensorSpec[], params: Params): Graph => traceComposition(operator, inputs, params);
  const operator: Operator = {
    name,
    infer: (inputs, params) => {
      // Pass only specs, as `validateGraph` does: a shape rule must not trace.
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
 * Defines a custom operator: a function of tensors with a shape rule, a derivative, a cost and an f64 reference. Every
 * pass and backend treats it like a built-in operator. A backend runs the kernel registered for the operator
 * (`createCpuBackend({ kernels })`, `createWebGpuBackend({ kernels })`), or the composition if no kernel is registered.
 *
 * Passes rely on two properties. Results depend on operands and parameters alone, so equal nodes are merged and unused
 * nodes are removed. Results are new values: not views of operands, and not written over operands.
 *
 * @returns A function that takes a list of tensors and plain parameters, for use inside traced functions. Graphs carry
 * the definition; `withOperators` restores the definitions in a graph that was saved as data.
 * @throws ArgumentError if the name is not `owner/name`, OperatorError if the definition is incomplete. The returned
 * function throws OperatorError if the definition violates its contract; compiling a graph can throw the same error.
 * @example
 * ```ts
 * const cube = defineOperator({
 *   name: "acme/cube",
 *   infer: ([x]) => [x!],
 *   reference: ([x]) => [x!.data.map((value) => value ** 3)],
 * });
 * const y = await evaluate((x: Tensor) => cube([x])[0]!, referenceBackend())(NdArray.from([1, 2]));
 * console.log(y.toNumbers()); // [1, 8]
 * ```
 */
export const defineOperator = <const Results extends readonly unknown[], P extends Params = Params>(
  definition: OperatorDefinition<P, Results>,
): DefinedOperator<P, Results> => {
  checkDefinition(definition as never);
  const operator = completeDefinition(definition as never);
  const { name } = operator;
  const { arity } = definition;
  const call = (inputs: readonly Tensor[], params: Params = {}): readonly Tensor[] => {
    if (!Array.isArray(inputs))
      throw new OperatorError(name, `its operands are ${describe(inputs)}; pass a list of tensors, such as [x]`);
    if (arity !== undefined && inputs.length !== arity)
      throw new OperatorError(name, `got ${inputs.length} operands, expected ${arity}; pass ${arity}`);
    const plain = plainParam(name, "params", params);
    if (typeof plain !== "object" || plain === null || Array.isArray(plain))
      throw new OperatorError(
        name,
        `its parameters are ${JSON.stringify(plain)}; pass a record, such as { limit: 1 }, or nothing`,
      );
    return emitDefined(operator, inputs as readonly Tensor[], plain as Params);
  };
  return Object.assign(call, { operator }) as unknown as DefinedOperator<P, Results>;
};

const describe = (value: unknown): string => (value instanceof Tensor ? "a tensor" : String(value));

/**
 * Restores the definitions of users' operators in a graph that was saved or posted as data.
 *
 * @param mesh Number of ranks along each mesh axis, as in `trace`; required by compositions that contain collectives.
 * `place`: mesh coordinates of the rank; required by compositions that call `meshCoordinate`.
 */
export const withOperators = (
  graph: Graph,
  operators: readonly { readonly operator: Operator }[],
  { mesh = {}, place = {} }: { readonly mesh?: Mesh; readonly place?: MeshCoordinates } = {},
): Graph => {
  const added = new Map<string, Operator>();
  for (const defined of operators) {
    if (typeof defined?.operator?.name !== "string")
      throw new ArgumentError(
        `withOperators: got ${String(defined)}; pass a list of operators that defineOperator returned`,
      );
    addDefinition(added, defined.operator);
  }
  return addDefinitions(graph, { operators: added, mesh, place });
};
