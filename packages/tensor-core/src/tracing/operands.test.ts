import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import * as functions from "../index.ts";
import {
  add,
  ArgumentError,
  evaluate,
  jit,
  matmul,
  NdArray,
  referenceBackend,
  relu,
  scope,
  type Tensor,
  trace,
  vjp,
  zeros,
} from "../index.ts";
import { emitOne } from "../graph/emit.ts";

/** All exported functions without parameter types, as JavaScript programs may call them. */
const loose = functions as unknown as { readonly [name: string]: (...args: unknown[]) => Tensor };

const x = NdArray.from([
  [1, 2],
  [3, 4],
]);
const backend = referenceBackend();

const traced = (fn: (x: Tensor) => unknown) => (): unknown => trace((own: Tensor) => fn(own) as Tensor, [x]);

describe("outside of a traced function", () => {
  test.each([
    ["add", () => loose["add"]!(x, x)],
    ["matmul", () => loose["matmul"]!(x, x)],
    ["sum", () => loose["sum"]!(x)],
    ["full", () => zeros([2])],
    ["scope", () => scope("part", () => x)],
    ["vjp", () => loose["vjp"]!(relu, x)],
  ] as const)("%s says so in one line", (name, call) => {
    expect(call).toThrow(ArgumentError);
    expect(call).toThrow(new RegExp(`^${name === "full" ? "constant" : name}: called outside of a traced function.*$`));
  });

  test("the hint is a program that runs as printed", async () => {
    const message = ((): string => {
      try {
        return String(loose["add"]!(x, x));
      } catch (error) {
        return (error as Error).message;
      }
    })();
    const program = message.slice(message.indexOf("import "));
    // Run in the folder of the package, in which the package name resolves as in an installation.
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: new URL("../..", import.meta.url),
      timeout: 60_000,
    });
    expect(stdout.trim()).toBe("NdArray f32[2] (4, 6)");
  });
});

describe("an operand that is not a tensor", () => {
  test.each<[message: string, fn: (x: Tensor) => unknown]>([
    ["add: operand 2 is the list [1,2], expected a Tensor; write constant([1,2])", (x) => loose["add"]!(x, [1, 2])],
    ["add: operand 2 is a Float32Array of 3 values", (x) => loose["add"]!(x, new Float32Array(3))],
    ["add: operand 2 is missing", (x) => loose["add"]!(x)],
    ["pass it as an argument of the traced function", (own) => loose["add"]!(own, x)],
    ["matmul: operand 2 is the number 2, expected a Tensor; write constant(2)", (x) => loose["matmul"]!(x, 2)],
    ["relu: its operand is the number 2", () => loose["relu"]!(2)],
    ["softmax: its operand is NdArray f32[2, 2] (1, 2, 3, 4)", () => loose["softmax"]!(x)],
    ["sum: its operand is a Promise, expected a Tensor; await it", () => loose["sum"]!(Promise.resolve(x))],
    ["where: its operand is true", (x) => loose["where"]!(true, x, 0)],
    ["concat: got Tensor f32[2, 2] instead of an options object", (x) => loose["concat"]!(x, x)],
    ["allReduce: its operand is missing", () => loose["allReduce"]!()],
    ["vjp: 2 primals were given; pass one", (x) => loose["vjp"]!(matmul, x, x)],
    ["vjp: its operand is NdArray f32[2, 2]", () => vjp(relu, x as never)],
    [
      "valueAndGrad needs a function that returns its loss, a Tensor, but it returned nothing",
      (x) => functions.valueAndGrad((() => {}) as never)(x),
    ],
    ["valueAndGrad: got Tensor f32[2, 2] instead of a function", (x) => loose["valueAndGrad"]!(x)],
  ])("%s", (message, fn) => {
    expect(traced(fn)).toThrow(ArgumentError);
    expect(traced(fn)).toThrow(message);
  });

  test("distinguishes a tensor of another trace from other values", () => {
    let leaked: Tensor | undefined;
    trace((x: Tensor) => (leaked = x), [x]);
    expect(traced((x) => add(x, leaked!))).toThrow("add: operand 2, Tensor f32[2, 2], is a tensor of another trace");
  });
});

describe("an argument that is not an array", () => {
  const give = (...args: unknown[]): Promise<unknown> =>
    evaluate((x: Tensor, y: { rate: Tensor }) => add(x, y.rate), backend)(...(args as [never, never]));
  const rate = NdArray.scalar(0.1);

  test.each<[message: string, args: unknown[]]>([
    ["argument 1 of a traced function is the number 3, expected an array; write NdArray.scalar(3)", [3, { rate }]],
    [
      "argument 1 of a traced function is the list [[1,2],[3,4]], expected an array; write NdArray.from([[1,2],[3,4]])",
      [
        [
          [1, 2],
          [3, 4],
        ],
        { rate },
      ],
    ], // prettier-ignore
    [
      "argument 1 of a traced function is a Float32Array of 2 values, expected an array; write NdArray.from(values, shape)",
      [new Float32Array(2), { rate }],
    ],
    ["argument 2 at rate of a traced function is the number 0.1", [x, { rate: 0.1 }]],
    ["argument 1 of a traced function is a Promise, expected an array; await it first", [Promise.resolve(x), { rate }]],
    ["argument 1 of a traced function is missing", [undefined, { rate }]],
  ])("%s", async (message, args) => {
    await expect(give(...args)).rejects.toThrow(ArgumentError);
    await expect(give(...args)).rejects.toThrow(message);
  });

  test("is rejected by an already compiled function, too", async () => {
    const f = jit((x: Tensor) => add(x, 1), backend);
    await f(x);
    for (const wrong of [3, undefined, null, [1, 2], { dtype: "f32", shape: [2, 2] }])
      await expect(f(wrong as never)).rejects.toThrow(/expected an array|is not an array of this backend/);
    expect((await backend.download(await f(x))).toNumbers()).toEqual([2, 3, 4, 5]);
  });
});

describe("jit", () => {
  test.each<[message: string, call: () => unknown]>([
    ["jit: its backend is missing; pass a backend", () => loose["jit"]!(relu)],
    ["jit: its backend is a Promise; await it", () => loose["jit"]!(relu, Promise.resolve(backend))],
    ["jit: the first argument is NdArray f32[2, 2] (1, 2, 3, 4), expected a function", () => loose["jit"]!(x, backend)],
    ["jit: donate is the number 0, but it must be a list", () => loose["jit"]!(relu, backend, { donate: 0 })],
  ])("%s", (message, call) => expect(call).toThrow(message));

  test("rejects an async function, because tracing is synchronous", async () => {
    await expect(evaluate((async (x: Tensor) => x) as never, backend)(x)).rejects.toThrow(
      "a traced function returned a Promise",
    );
  });
});

describe("shapes and dtypes that do not exist", () => {
  test.each<[message: string, fn: (x: Tensor) => unknown]>([
    ["shape [-2] has the size -2 in dimension 0", () => zeros([-2])],
    ["shape [1.5] has the size 1.5 in dimension 0", () => zeros([1.5])],
    ["got 3 instead of a shape; write a list of sizes", () => loose["zeros"]!(3)],
    ["shape [-2,-2] has the size -2 in dimension 0", (x) => functions.reshape(x, [-2, -2])],
    ["shape [2.5] has the size 2.5", () => functions.arange(2.5)],
    ["constant: shape [-1] has the size -1", () => emitOne("constant", [], { dtype: "f32", shape: [-1], value: 0 })],
    ['there is no dtype "f64"; use one of f32', (x) => loose["cast"]!(x, "f64")],
    ['there is no dtype "f64"; use one of f32', () => loose["zeros"]!([2], "f64")],
    [
      "shape [-1] has the size -1",
      (x) => functions.normal(functions.constant([0, 1], "u32"), [-1, x.shape[0]!].slice(0, 1)),
    ],
  ])("%s", (message, fn) => expect(traced(fn)).toThrow(message));
});
