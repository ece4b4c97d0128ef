import { readdirSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as door from "../src/index.ts";
import { evaluate, jit, NdArray, referenceBackend, SkeinError, type Tensor, trace } from "../src/index.ts";

/** Source folders of the functions that users call. */
const families = ["functions", "optim", "autodiff"];
/**
 * Exported functions without user-level argument checks: called only by Skein's packages, or passed to other functions
 * as arguments.
 */
const inner = ["decayMatrices", "padInterior", "resolveSchedule", "broadcastDims"];
const published = async (): Promise<[name: string, fn: (...args: unknown[]) => unknown][]> => {
  const modules = families.flatMap((family) =>
    readdirSync(new URL(`../src/${family}/`, import.meta.url))
      .filter((file) => !file.endsWith(".test.ts"))
      .map((file) => import(new URL(`../src/${family}/${file}`, import.meta.url).href) as Promise<object>),
  );
  const names = (await Promise.all(modules))
    .flatMap((module) => Object.keys(module))
    .filter((name) => name in door && !inner.includes(name));
  return [...new Set(names)].sort().flatMap((name) => {
    const value = (door as Record<string, unknown>)[name];
    return typeof value === "function" ? [[name, value as (...args: unknown[]) => unknown]] : [];
  });
};

const specs = [
  { dtype: "f32", shape: [3, 4] },
  { dtype: "f32", shape: [3] },
  { dtype: "i32", shape: [3] },
  { dtype: "bool", shape: [3, 4] },
  { dtype: "u32", shape: [2] },
  { dtype: "u8", shape: [3, 4] },
  { dtype: "f16", shape: [2, 2] },
  { dtype: "f32", shape: [2, 6, 6, 3] },
  { dtype: "f32", shape: [] },
  { dtype: "f32", shape: [0, 4] },
] as const;

/** Invalid argument values that a user may pass. */
const junk: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  3,
  -1,
  0.5,
  NaN,
  Infinity,
  5n,
  "",
  "f32",
  "data",
  [],
  [1, 2],
  [3, 4],
  [-1, 2],
  [[1, 2], [3]],
  [undefined],
  ["a"],
  [[0, 1]],
  new Float32Array([1, 2, 3]),
  new Uint8Array(0),
  NdArray.from([[1, 2]]),
  NdArray.scalar(2),
  { dtype: "f32", shape: [2] },
  { dtype: "f64", shape: "2" },
  {},
  { dim: 1 },
  { dim: "1" },
  { dim: 7 },
  { dims: [0, 0] },
  { dims: null },
  { window: 2 },
  { window: [2] },
  { padding: -1, stride: 0 },
  { lower: 1, transpose: 2 },
  { learningRate: 0.1, decay: 2 },
  { initial: 1, steps: 2, every: 3, factor: -1, from: "0", to: {} },
  () => 1,
  (x: unknown) => x,
  Promise.resolve(1),
  new Map(),
];

const isUsersError = (error: unknown): boolean => error instanceof SkeinError && error.kind === "user";

const functions = await published();
let foreign: unknown;
trace((x: Tensor) => (foreign = x), [specs[0]]);

test("finds functions to try", () => {
  expect(functions.map(([name]) => name)).toEqual(
    expect.arrayContaining(["add", "allReduce", "adam", "conv2d", "sum", "vjp", "warmUp"]),
  );
});

// About half of the arguments are valid, so that checks of later arguments are also tested.
test.each(functions)("%s returns a result or throws a user error for any arguments", (name, fn) => {
  const argument = fc.oneof(
    { weight: 3, arbitrary: fc.nat(specs.length - 1).map((tensor) => ({ tensor })) },
    { weight: 1, arbitrary: fc.constant({ tensors: [0, 0] as const }) },
    { weight: 4, arbitrary: fc.nat(junk.length).map((wrong) => ({ wrong })) },
  );
  fc.assert(
    fc.property(fc.array(argument, { maxLength: 5 }), fc.boolean(), (chosen, traced) => {
      const call = (...tensors: Tensor[]): Tensor => {
        const args = chosen.map((one) =>
          "tensor" in one
            ? tensors[one.tensor]
            : "tensors" in one
              ? one.tensors.map((i) => tensors[i])
              : one.wrong < junk.length
                ? junk[one.wrong]
                : foreign,
        );
        fn(...args);
        return tensors[0]!;
      };
      try {
        if (traced) trace(call, [...specs] as never);
        else call();
      } catch (error) {
        if (!isUsersError(error)) throw new Error(`${name} threw ${String(error)}`, { cause: error });
      }
    }),
    { numRuns: 100 },
  );
});

test("compiled functions return a result or throw a user error for any arguments", async () => {
  const backend = referenceBackend();
  const loose = (value: unknown) => value as never;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...junk), { maxLength: 3 }),
      fc.constantFrom(...junk),
      async (args, other) => {
        const attempts: (() => unknown)[] = [
          () => evaluate((x: Tensor, y: Tensor) => door.add(x, y), backend)(...(args as unknown as [NdArray, NdArray])),
          () => evaluate((x: Tensor) => door.relu(x), backend)(loose({ x: args[0], deeper: [other] })),
          () => evaluate(() => loose(other) as Tensor, backend)(),
          () => jit(loose(other), loose(args[0]), loose({ donate: args[1] })),
          () => trace(loose(other), loose(args[0])),
          () => NdArray.from(loose(args[0]), loose(args[1]), loose(args[2])),
          () => new NdArray(loose(args[0]), loose(args[1]), loose(args[2])),
          () => NdArray.zeros(loose(args[0]), loose(args[1])),
          () => NdArray.scalar(loose(args[0]), loose(args[1])),
        ];
        for (const attempt of attempts)
          await (async () => attempt())().catch((error: unknown) => {
            if (!isUsersError(error)) throw error;
          });
      },
    ),
    { numRuns: 200 },
  );
});
