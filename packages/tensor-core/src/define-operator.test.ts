import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { valueAndGrad } from "./autodiff/vjp.ts";
import { defineOperator, type OperatorDefinition, withOperators } from "./define-operator.ts";
import { ArgumentError, OperatorError } from "./errors.ts";
import { allGather, allReduce } from "./functions/collective.ts";
import { softplus } from "./functions/activation.ts";
import { add, exp, multiply, sigmoid, square, stopGradient, subtract, tanh } from "./functions/elementwise.ts";
import { concat, slice } from "./functions/movement.ts";
import { sum } from "./functions/reduce.ts";
import { nodeCost } from "./inspection/cost.ts";
import { emit, scope } from "./graph/emit.ts";
import type { Graph, Params } from "./graph/graph.ts";
import { printGraph } from "./inspection/print.ts";
import type { Tensor } from "./graph/tensor.ts";
import { trace } from "./tracing/trace.ts";
import { validateGraph } from "./inspection/validate.ts";
import { evaluate, jit } from "./jit.ts";
import { NdArray } from "./nd-array.ts";
import { expandCompositions } from "./passes/expand-compositions.ts";
import { mixedPrecision } from "./passes/mixed-precision.ts";
import { optimize } from "./passes/optimize.ts";
import { interpretWorld } from "./reference/interpret.ts";
import { referenceBackend } from "./reference/reference-backend.ts";
import type { TensorSpec } from "./shape.ts";

const f32 = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;
const array = (spec: TensorSpec, ...data: number[]) => ({ spec, data: Float64Array.from(data) });
const run = async (fn: (...args: Tensor[]) => readonly Tensor[], ...args: number[][]): Promise<number[][]> =>
  ((await evaluate(fn, referenceBackend())(...args.map((arg) => NdArray.from(arg)))) as readonly NdArray[]).map(
    (result) => Array.from(result.toNumbers()),
  );
const opsOf = (graph: Graph): string[] => graph.nodes.map(({ op }) => op);
const all = () => false;

const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x!, tanh(softplus(x!)))] });

/**
 * Operator that returns sum and difference. All fields of the definition are given, so no field is derived from a
 * composition.
 */
const butterfly = defineOperator({
  name: "acme/butterfly",
  infer: ([a]) => [a!, a!],
  vjp: ({ cotangents: [p, q] }) => [add(p!, q!), subtract(p!, q!)],
  reference: ([a, b]) => [a!.data.map((x, i) => x + b!.data[i]!), a!.data.map((x, i) => x - b!.data[i]!)],
});

const scaled = defineOperator({
  name: "acme/scaled",
  composition: ([x], { factor }: { readonly factor: number }) => [multiply(x!, factor)],
});

describe("defineOperator", () => {
  it("composes: value, gradient against finite differences, cost, scope", async () => {
    const xs = [-3, -0.5, 0, 0.7, 4];
    const f = (x: number): number => x * Math.tanh(Math.log1p(Math.exp(x)));
    const [value, gradient] = await run(
      (x) => [mish([x!])[0], valueAndGrad((y: Tensor) => sum(mish([y])[0]))(x!)[1]],
      xs,
    );
    const h = 1e-5;
    xs.forEach((x, i) => {
      expect(value![i]).toBeCloseTo(f(x), 6);
      expect(gradient![i]).toBeCloseTo((f(x + h) - f(x - h)) / (2 * h), 5);
    });
    const { graph } = trace((x: Tensor) => scope("layer", () => mish([x])[0]), [f32(5)]);
    expect(printGraph(graph, { cost: true }).split("\n")[2]).toBe("  %1 = acme/mish(%0) f32[5]  # 180 flop, 40 B");
    expect([...new Set(expandCompositions(graph, all).nodes.map((node) => node.scope))]).toEqual([
      "",
      "layer/acme/mish",
    ]);
  });

  it("uses the given shape rule, derivative and reference, with several results", async () => {
    const [p, q, da, db] = await run(
      (a, b) => {
        const loss = (pair: readonly [Tensor, Tensor]): Tensor => {
          const [u, v] = butterfly(pair);
          return sum(multiply(u, square(v)));
        };
        const [, [x, y]] = valueAndGrad(loss)([a!, b!] as const);
        return [...butterfly([a!, b!]), x, y];
      },
      [1, 2],
      [3, 5],
    );
    expect([p, q]).toEqual([
      [4, 7],
      [-2, -3],
    ]);
    // derivatives of u·v²: v² + 2uv by a, v² − 2uv by b
    expect([da, db]).toEqual([
      [4 - 16, 9 - 42],
      [4 + 16, 9 + 42],
    ]);
  });

  it("is one node to every pass: merged if equal, dropped if unused, kept by mixed precision, valid throughout", () => {
    const { graph } = trace(
      (x: Tensor, y: Tensor) => {
        butterfly([x, y]);
        const [u] = butterfly([add(x, 1), y]);
        const [, v] = butterfly([add(x, 1), y]);
        return [scaled([u], { factor: 2 })[0], scaled([u], { factor: 3 })[0], scaled([v], { factor: 2 })[0]];
      },
      [f32(4), f32(4)],
    );
    for (const pass of [
      optimize,
      (g: Graph) => mixedPrecision(optimize(g, { fuse: false })),
      (g: Graph) => optimize(expandCompositions(g, (_, { op }) => op !== "acme/scaled")),
    ]) {
      const rewritten = pass(graph);
      validateGraph(rewritten);
      expect(opsOf(rewritten).filter((op) => op === "acme/butterfly")).toHaveLength(1);
      expect(nodeCost(rewritten, rewritten.nodes.find(({ op }) => op === "acme/butterfly")!)).toEqual({
        flops: 8,
        bytesRead: 32,
        bytesWritten: 32,
      });
    }
    expect(new Set(opsOf(optimize(expandCompositions(graph, all))))).toEqual(
      new Set(["input", "fused", "acme/butterfly"]),
    );
  });

  it("keeps graphs plain data, to which definitions can be restored", () => {
    const { graph } = trace((x: Tensor) => scaled([x], { factor: 2 }), [f32(2)]);
    const saved = JSON.parse(JSON.stringify(graph)) as Graph;
    expect(structuredClone(graph)).toEqual(saved);
    const input = [[array(f32(2), 1, 2)]];
    for (const use of [
      () => interpretWorld(saved, input),
      () => referenceBackend().compile(saved),
      () => validateGraph(saved),
    ]) {
      expect(use).toThrow(OperatorError);
      expect(use).toThrow(
        "acme/scaled: this operator is not defined; call the function that defineOperator returned, or restore the operators of a saved or posted graph",
      );
    }
    expect(Array.from(interpretWorld(withOperators(saved, [scaled]), input)[0]![0]!.data)).toEqual([2, 4]);
    const misspelt = withOperators(
      { ...saved, nodes: saved.nodes.map((node) => ({ ...node, op: node.op.replace("scaled", "scalde") })) },
      [scaled],
    );
    expect(() => validateGraph(misspelt)).toThrow(
      /acme\/scalde: this operator is not defined; did you mean "acme\/scaled"\?/,
    );
  });

  it("keeps definitions through passes that a user gives to jit", async () => {
    const rebuilt = ({ nodes, inputs, outputs }: Graph): Graph => ({ nodes, inputs, outputs });
    const f = jit((x: Tensor) => mish([x])[0], referenceBackend(), { passes: [rebuilt] });
    await expect(f(NdArray.from([1]))).resolves.toBeDefined();
  });

  it("composes of other users' operators, and of collectives for the mesh of the trace", () => {
    const meanAll = defineOperator({
      name: "acme/mean-over-ranks",
      composition: ([x]) => [multiply(allReduce(mish([x!])[0], "data"), 0.5)],
    });
    const mish1 = 0.8650983882673103;
    for (const options of [{ mesh: { data: 2 } }]) {
      const { graph } = trace((x: Tensor) => meanAll([x])[0], [f32(1)], options);
      for (const each of [graph, withOperators(JSON.parse(JSON.stringify(graph)) as Graph, [meanAll], options)]) {
        const results = interpretWorld(each, [[array(f32(1), 1)], [array(f32(1), 0)]]);
        expect(results.map(([result]) => result!.data[0])).toEqual(
          [mish1 / 2, mish1 / 2].map((value) => expect.closeTo(value, 6) as number),
        );
        expect(opsOf(expandCompositions(each, all))).toContain("all-reduce");
        expect(validateGraph(withOperators(each, [scaled]))).toBeUndefined();
        expect(interpretWorld(withOperators(each, [scaled]), [[array(f32(1), 1)], [array(f32(1), 0)]])).toEqual(
          results,
        );
      }
    }
  });

  it("computes the cost of a composition for the mesh of its graph, and rejects a kernel or reference for collectives", () => {
    const reference = ([x]: readonly { data: Float64Array }[]) => [x!.data];
    const gathered = defineOperator({ name: "acme/gathered", composition: ([x]) => [sum(allGather(x!, "data"))] });
    const { graph } = trace((x: Tensor) => gathered([x])[0], [f32(1)], { mesh: { data: 1000 } });
    expect(nodeCost(graph, graph.nodes[1]!).flops).toBeGreaterThanOrEqual(1000);
    expect(() => expandCompositions(graph, () => true)).toThrow(
      /acme\/gathered: its composition contains collectives, which a kernel/,
    );
    const outer = defineOperator({ name: "acme/outer", composition: ([x]) => [gathered([x!])[0]], reference });
    const wrapped = trace((x: Tensor) => outer([x])[0], [f32(1)], { mesh: { data: 2 } }).graph;
    expect(() => interpretWorld(wrapped, [[array(f32(1), 1)]])).toThrow(
      /acme\/outer: its composition contains collectives/,
    );
  });

  it("law: a composition computes the same as its node, anywhere in a graph", () => {
    const rows = (n: number, width: number): Tensor => f32(n, width);
    const program = (x: Tensor): readonly Tensor[] => {
      const part = slice(x, [0, 0], [x.shape[0]!, Math.min(2, x.shape[1]!)]);
      const [u, v] = butterfly([exp(part), add(mish([part])[0], 1)]);
      return [
        concat([u, mish([v])[0]], { dim: 1 }),
        sum(multiply(scaled([u], { factor: -0.5 })[0], v), { dims: [0] }),
        sum(mish([x])[0]),
      ];
    };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }), (n, width) => {
        const { graph } = trace(program, [rows(n, width)]);
        const data = Array.from({ length: n * width }, (_, i) => Math.sin(i + 1));
        const results = [graph, optimize(expandCompositions(graph, all))].map(
          (each) => interpretWorld(each, [[array(rows(n, width), ...data)]])[0]!,
        );
        results[1]!.forEach(({ data: own }, i) =>
          expect(Array.from(own)).toEqual(
            Array.from(results[0]![i]!.data, (value) => expect.closeTo(value, 6) as number),
          ),
        );
      }),
      { numRuns: 16 },
    );
  });

  it("rejects a gradient through an operator without a rule, unless it is stopped", () => {
    const sorted = defineOperator({ name: "acme/sorted", infer: ([x]) => [x!], reference: ([x]) => [x!.data.sort()] });
    const gradient = (stop: (x: Tensor) => Tensor) => () =>
      trace((x: Tensor) => valueAndGrad((y: Tensor) => sum(add(sorted([stop(y)])[0], y)))(x), [f32(3)]);
    expect(gradient((x) => x)).toThrow(
      "acme/sorted has no gradient rule; wrap its input in stopGradient() if no gradient should flow",
    );
    expect(gradient(stopGradient)).not.toThrow();
  });

  it("isolates writes of a reference into its operands", async () => {
    const sorted = defineOperator({ name: "acme/sorted", infer: ([x]) => [x!], reference: ([x]) => [x!.data.sort()] });
    expect(await run((x) => [sorted([x!])[0], x!], [3, 1, 2])).toEqual([
      [1, 2, 3],
      [3, 1, 2],
    ]);
  });
});

describe("invalid definitions", () => {
  const good = {
    name: "acme/x",
    infer: ([x]: readonly TensorSpec[]) => [x!],
    reference: ([x]: readonly { data: Float64Array }[]) => [x!.data],
  };
  it.each([
    [
      "a name of ours",
      { ...good, name: "add" },
      ArgumentError,
      /an operator was named "add"; users' operators are named owner\/name/,
    ],
    ["no name", { ...good, name: undefined }, ArgumentError, /was named undefined/],
    ["a name with blanks", { ...good, name: "my lab/x" }, ArgumentError, /owner\/name/],
    ["nothing", undefined, ArgumentError, /was named undefined/],
    ["half an operand", { ...good, arity: 0.5 }, OperatorError, /arity is 0.5; pass a whole number/],
    [
      "a part that is not a function",
      { ...good, vjp: "none" },
      OperatorError,
      /acme\/x: vjp is none; pass a function, or leave it out/,
    ],
    ["no shape rule", { ...good, infer: undefined }, OperatorError, /has no composition and no shape rule \(infer\)/],
    ["no reference", { ...good, reference: undefined }, OperatorError, /has no composition and no reference/],
  ])("%s", (_, definition, kind, message) => {
    const define = () => defineOperator(definition as never);
    expect(define).toThrow(kind);
    expect(define).toThrow(message);
  });
});

describe("an operator that violates its contract", () => {
  const use = (
    definition: Partial<OperatorDefinition<Params, readonly unknown[]>>,
    fn: (y: Tensor) => Tensor = (y) => y,
  ) => {
    const infer = ([x]: readonly TensorSpec[]) => [x!];
    const reference = ([x]: readonly { data: Float64Array }[]) => [x!.data];
    const operator = defineOperator({ name: "acme/x", infer, reference, ...definition } as never);
    const { graph } = trace((x: Tensor) => fn((operator([x]) as readonly Tensor[])[0]!), [f32(2)]);
    validateGraph(graph);
    return interpretWorld(graph, [[array(f32(2), 1, 2)]]);
  };
  const gradientBy = (vjp: unknown) => () => {
    const operator = defineOperator({ name: "acme/x", composition: ([x]) => [exp(x!)], vjp: vjp as never });
    trace((x: Tensor) => valueAndGrad((y: Tensor) => sum(operator([y])[0]))(x), [f32(2)]);
  };
  const own = ({ cotangents }: { cotangents: readonly Tensor[] }): Tensor => cotangents[0]!;
  it.each<[string, () => unknown, RegExp]>([
    [
      "a shape rule that gives a spec",
      () => use({ infer: (([x]: readonly TensorSpec[]) => x) as never }),
      /its shape rule \(infer\) returned \{.*it must return a list/,
    ],
    ["a shape of halves", () => use({ infer: () => [{ dtype: "f32", shape: [0.5] }] }), /sizes that are whole numbers/],
    [
      "a reference of another length",
      () => use({ reference: () => [new Float64Array(3)] }),
      /its reference returned Float64Array of 3 for f32\[2\]/,
    ],
    [
      "a reference that gives bare data",
      () => use({ reference: ([x]) => x!.data as never }),
      /its reference returned Float64Array of 2 for f32\[2\]/,
    ],
    [
      "a reference of plain numbers",
      () => use({ reference: () => [[1, 2]] as never }),
      /its reference returned Array of 2/,
    ],
    [
      "a composition of another shape",
      () => use({ reference: undefined as never, composition: ([x]) => [sum(x!)] }),
      /its composition returns f32\[\], but its shape rule says f32\[2\]/,
    ],
    [
      "a composition that gives a tensor",
      () => use({ infer: undefined as never, composition: (([x]: readonly Tensor[]) => exp(x!)) as never }),
      /its composition returned a tensor; return the list/,
    ],
    [
      "a cost that is not a number",
      () =>
        printGraph(
          trace(
            (x: Tensor) =>
              defineOperator({
                name: "acme/x",
                composition: ([y]) => [exp(y!)],
                cost: () => ({ flops: NaN, bytesRead: 0, bytesWritten: 0 }),
              })([x])[0],
            [f32(2)],
          ).graph,
          { cost: true },
        ),
      /its cost rule returned NaN for flops/,
    ],
    [
      "a gradient of another shape",
      gradientBy((c: never) => [sum(own(c))]),
      /its gradient rule returned f32\[\] for operand 0 of f32\[2\]/,
    ],
    ["a bare gradient", gradientBy(own), /for 1 operands; return a list with one entry per operand/],
    ["too many gradients", gradientBy((c: never) => [own(c), own(c)]), /returned 2 entries for 1 operands/],
    ["a number as a gradient", gradientBy(() => [0]), /returned 0 instead of a tensor for operand 0/],
  ])("%s", (_, attempt, message) => {
    expect(attempt).toThrow(OperatorError);
    expect(attempt).toThrow(message);
  });

  it.each<[string, () => unknown, RegExp]>([
    [
      "operands that are no list",
      () => mish(f32(1) as never),
      /its operands are .*; pass a list of tensors, such as \[x\]/,
    ],
    [
      "a parameter that is not data",
      () => trace((x: Tensor) => scaled([x], { factor: (() => 2) as never }), [f32(1)]),
      /parameter params.factor is function/,
    ],
    [
      "a parameter that JSON loses",
      () => trace((x: Tensor) => scaled([x], { factor: NaN }), [f32(1)]),
      /params.factor is NaN; .*encodeNumber/,
    ],
    [
      "a tensor among the parameters",
      () => trace((x: Tensor) => scaled([x], { factor: x as never }), [f32(1)]),
      /params.factor is a tensor; .*pass tensors as operands/,
    ],
    [
      "parameters that are no record",
      () => trace((x: Tensor) => scaled([x], 2 as never), [f32(1)]),
      /its parameters are 2; pass a record/,
    ],
    [
      "a parameter that holds itself",
      () => {
        const factor: unknown[] = [];
        factor.push(factor);
        return trace((x: Tensor) => scaled([x], { factor: factor as never }), [f32(1)]);
      },
      /parameter params.factor.0 contains itself/,
    ],
    [
      "another number of operands",
      () =>
        trace(
          (x: Tensor) => defineOperator({ name: "acme/x", arity: 1, composition: ([y]) => [exp(y!)] })([x, x]),
          [f32(1)],
        ),
      /acme\/x: got 2 operands, expected 1; pass 1/,
    ],
    [
      "an operator that nobody defined",
      () => trace(() => emit("sofmax", []), []),
      /sofmax: this operator is not defined; did you mean "softmax"\?/,
    ],
    [
      "a name of JavaScript's",
      () => trace(() => emit("constructor", []), []),
      /constructor: this operator is not defined/,
    ],
  ])("rejects %s when the operator is used", (_, attempt, message) => {
    expect(attempt).toThrow(OperatorError);
    expect(attempt).toThrow(message);
  });

  it("rejects two definitions of one name in one graph, also where one is inside of a composition", () => {
    const other = defineOperator({ name: "acme/mish", composition: ([x]) => [x!] });
    const wrapped = defineOperator({
      name: "acme/wrapped",
      infer: ([x]) => [x!],
      composition: ([x]) => [other([x!])[0]],
    });
    expect(() => trace((x: Tensor) => [mish([x])[0], other([x])[0]], [f32(1)])).toThrow(
      /acme\/mish: one graph contains two different definitions of this name; define/,
    );
    const { graph } = trace((x: Tensor) => [mish([x])[0], wrapped([x])[0]], [f32(1)]);
    expect(() => expandCompositions(graph, all)).toThrow(/two different definitions/);
  });

  it("rejects a composition that uses itself, directly or indirectly, with and without a shape rule", () => {
    for (const infer of [undefined, ([x]: readonly TensorSpec[]) => [x!] as const]) {
      const rule = infer === undefined ? {} : { infer };
      const a: (inputs: readonly Tensor[]) => readonly [Tensor] = defineOperator({
        name: "acme/a",
        ...rule,
        composition: ([x]) => [b([x!])[0]],
      });
      const b: (inputs: readonly Tensor[]) => readonly [Tensor] = defineOperator({
        name: "acme/b",
        ...rule,
        composition: ([x]) => [a([sigmoid(x!)])[0]],
      });
      const run = (fn: (x: Tensor) => Tensor) => () => referenceBackend().compile(trace(fn, [f32(1)]).graph);
      expect(run((x) => a([x])[0])).toThrow(
        /acme\/a: its composition uses the operator itself \(acme\/a uses acme\/b uses acme\/a\)/,
      );
      expect(run((x) => valueAndGrad((y: Tensor) => sum(a([y])[0]))(x)[1])).toThrow(/uses the operator itself/);
    }
  });
});
