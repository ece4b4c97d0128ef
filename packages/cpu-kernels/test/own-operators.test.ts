import { createCpuBackend, createSharedMemory, javascriptKernel, type CpuKernel } from "@skein/cpu-kernels";
import {
  add,
  ArgumentError,
  defineOperator,
  exp,
  jit,
  matmul,
  multiply,
  NdArray,
  OperatorError,
  referenceBackend,
  relu,
  slice,
  softplus,
  sum,
  tanh,
  type Tensor,
  UnsupportedError,
  valueAndGrad,
  evaluate,
} from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x!, tanh(softplus(x!)))] });
const mishKernel = javascriptKernel({
  op: mish.operator.name,
  run: ([x], [y]) => {
    for (let i = 0; i < x!.length; i++) y![i] = x![i]! * Math.tanh(Math.log1p(Math.exp(x![i]!)));
  },
});

/** Running maximum and its positions. The operator has two results with two dtypes, and no composition. */
const runningMax = defineOperator({
  name: "acme/running-max",
  infer: ([x]) => [x!, { dtype: "i32", shape: x!.shape }],
  reference: ([x]) => {
    const best = x!.data.map((_, i) =>
      x!.data.slice(0, i + 1).reduce((at, value, j, all) => (value > all[at]! ? j : at), 0),
    );
    return [best.map((at) => x!.data[at]!), best];
  },
});
const runningMaxKernel = javascriptKernel({
  op: runningMax.operator.name,
  run: ([x], [values, indices]) => {
    let at = 0;
    x!.forEach((value: number, i: number) => {
      if (value > x![at]!) at = i;
      values![i] = x![at]!;
      indices![i] = at;
    });
  },
});

const open = (kernels: readonly CpuKernel[] = [mishKernel, runningMaxKernel]) =>
  createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20), kernels });
const numbers = async (results: Promise<readonly NdArray[]>): Promise<number[][]> =>
  (await results).map((each) => Array.from(each.toNumbers()));

describe("user-defined operators on the CPU", () => {
  test("law: a step with a kernel, with a composition and with the reference gives the same, on views, in fused regions and without elements", async () => {
    const step = (w: Tensor, x: Tensor): readonly Tensor[] => {
      const loss = (own: Tensor): Tensor => {
        const hidden = mish([slice(matmul(x, own), [0, 1], [x.shape[0]!, 3])])[0];
        return sum(multiply(relu(add(hidden, 1)), exp(mish([multiply(hidden, 0.5)])[0])));
      };
      const [value, gradient] = valueAndGrad(loss)(w);
      const [best, where] = runningMax([add(w, 0)]);
      return [value, gradient, multiply(best, 2), where];
    };
    const [kernel, composed] = [await open(), await open([runningMaxKernel])];
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }), async (rows, inner) => {
        const array = (...shape: number[]) =>
          NdArray.from(
            Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(3 * i + rows)),
            shape,
          );
        const args = [array(inner, 3), array(rows, inner)] as const;
        const [expected, ...actual] = await Promise.all(
          [referenceBackend(), kernel, composed].map((each) => numbers(evaluate(step, each)(...args) as never)),
        );
        for (const results of actual)
          results.forEach((result, i) => {
            expect(result).toHaveLength(expected![i]!.length);
            result.forEach((value, j) =>
              expect(Math.abs(value - expected![i]![j]!)).toBeLessThan(1e-4 * (1 + Math.abs(expected![i]![j]!))),
            );
          });
      }),
      { numRuns: 15 },
    );
    expect(kernel.arena.bytesInUse).toBe(0);
  });

  test("runs a kernel for its nodes, and the composition for nodes that the kernel refuses", async () => {
    let calls = 0;
    const counted = javascriptKernel({
      op: mish.operator.name,
      refuses: ({ inputs: [x] }) => (x!.shape.length > 1 ? "it takes vectors" : undefined),
      run: (inputs, outputs, node) => {
        calls++;
        outputs[0]!.set(inputs[0]!);
        return node;
      },
    });
    const backend = await open([counted]);
    const f = (x: Tensor): Tensor => mish([x])[0];
    expect(Array.from((await evaluate(f, backend)(NdArray.from([1, 2]))).toNumbers())).toEqual([1, 2]);
    const [[value]] = [Array.from((await evaluate(f, backend)(NdArray.from([1, 2], [1, 2]))).toNumbers())];
    expect(value).toBeCloseTo(0.865, 3);
    expect(calls).toBe(1);
  });

  test("does not overwrite a donated argument or an intermediate value while a kernel reads it", async () => {
    const reversed = defineOperator({
      name: "acme/reversed",
      infer: ([x]) => [x!],
      reference: ([x]) => [x!.data.toReversed()],
    });
    const kernel = javascriptKernel({
      op: reversed.operator.name,
      run: ([x], [y]) => {
        for (let i = 0; i < x!.length; i++) y![i] = x![x!.length - 1 - i]!;
      },
    });
    const backend = await open([kernel]);
    const donated = jit((x: Tensor) => reversed([x])[0], backend, { donate: [0] });
    expect((await backend.download(await donated(backend.upload(NdArray.from([1, 2, 3]))))).toNumbers()).toEqual([
      3, 2, 1,
    ]);
    const between = await evaluate(
      (x: Tensor) => add(reversed([multiply(x, 2)])[0], 0.5),
      backend,
    )(NdArray.from([1, 2, 3]));
    expect(between.toNumbers()).toEqual([6.5, 4.5, 2.5]);
  });

  test("keeps the values of an argument that is returned together with a result computed from it", async () => {
    const results = await evaluate((x: Tensor) => [x, ...runningMax([x]), x], await open())(NdArray.from([2, 1, 4]));
    expect(await numbers(Promise.resolve(results as never))).toEqual([
      [2, 1, 4],
      [2, 2, 4],
      [0, 0, 2],
      [2, 1, 4],
    ]);
  });

  test("creates new views after the memory has grown", async () => {
    const backend = await open();
    const f = jit((x: Tensor) => runningMax([x])[0], backend);
    const x = backend.upload(NdArray.from([1, 2]));
    backend.free(await f(x));
    const large = backend.upload(NdArray.zeros("f32", [8 * 2 ** 20]));
    expect((await backend.download(await f(x))).toNumbers()).toEqual([1, 2]);
    backend.free(large);
  });

  test("runs a user's WebAssembly module in the same memory", async () => {
    // (module (import "m" "memory" (memory 1 65536 shared)) (func (export "twice") (param i32 i32 i32) …)): y[i] =
    // x[i] +
    // x[i] for i < n
    const twice = defineOperator({ name: "acme/twice", composition: ([x]) => [add(x!, x!)] });
    const bytes = twiceModule();
    const backend = await createCpuBackend({
      memory: createSharedMemory(64 * 2 ** 20),
      kernels: [
        {
          op: twice.operator.name,
          bind: ({ inputs: [x] }, _, memory) => {
            const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { memory } });
            const run = exports["twice"] as (x: number, y: number, n: number) => void;
            return (inputs, outputs) => run(inputs[0]!, outputs[0]!, x!.shape[0]!);
          },
        },
      ],
    });
    const result = await evaluate((x: Tensor) => twice([x])[0], backend)(NdArray.from([1, 2, 3]));
    expect(result.toNumbers()).toEqual([2, 4, 6]);
  });

  test("rejects a graph without kernel and composition, with operator, backend and cure", async () => {
    const run = (x: Tensor): Tensor => runningMax([x])[0];
    const attempt = evaluate(run, await open([]))(NdArray.from([1]));
    await expect(attempt).rejects.toThrow(UnsupportedError);
    await expect(attempt).rejects.toThrow(
      /the cpu backend cannot run this graph:\n {2}acme\/running-max: has no kernel on this backend and no composition; give the backend one \(\{ kernels/,
    );
  });

  test.each([
    [
      "for an operator of ours",
      [{ ...mishKernel, op: "add" }],
      /a kernel was given for operator "add"; kernels of one's own are for operators of one's own/,
    ],
    ["bare", mishKernel as never, /kernels is no list/],
    ["without bind", [{ op: mish.operator.name } as never], /the kernel for operator "acme\/mish" has no bind\(\)/],
    ["twice", [mishKernel, mishKernel], /two kernels were given for operator "acme\/mish"/],
  ])("rejects a kernel with %s", async (_, kernels, message) => {
    await expect(open(kernels)).rejects.toThrow(ArgumentError);
    await expect(open(kernels)).rejects.toThrow(message);
  });

  test("leaves no memory allocated if a kernel cannot be bound", async () => {
    const failing: CpuKernel = {
      op: runningMax.operator.name,
      scratchBytes: () => 4096,
      bind: () => {
        throw new Error("no such export");
      },
    };
    const backend = await open([failing]);
    const attempt = evaluate((x: Tensor) => runningMax([add(x, 1)])[0], backend)(NdArray.from([1]));
    await expect(attempt).rejects.toThrow("no such export");
    expect(backend.arena.bytesInUse).toBe(0);
  });

  test("rejects an asynchronous kernel, and the backend stays usable", async () => {
    const late = javascriptKernel({ op: mish.operator.name, run: async () => undefined });
    const backend = await open([late]);
    const attempt = evaluate((x: Tensor) => mish([x])[0], backend)(NdArray.from([1]));
    await expect(attempt).rejects.toThrow(OperatorError);
    await expect(attempt).rejects.toThrow(/acme\/mish: its kernel returned a promise/);
    expect((await evaluate((x: Tensor) => add(x, 1), backend)(NdArray.from([1]))).toNumbers()).toEqual([2]);
    expect(backend.arena.bytesInUse).toBe(0);
  });
});

const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];

/** Returns the module above, encoded by hand, so that the test does not need an assembler. */
const twiceModule = (): Uint8Array<ArrayBuffer> => {
  const section = (id: number, ...content: number[]): number[] => [id, content.length, ...content];
  const name = (text: string): number[] => [text.length, ...new TextEncoder().encode(text)];
  const body = [
    [1, 1, 0x7f], // one local: the address after the last element of x
    [0x20, 0, 0x20, 2, 0x41, 2, 0x74, 0x6a, 0x21, 3], // end = x + (n << 2)
    [0x02, 0x40, 0x03, 0x40], // block, loop
    [0x20, 0, 0x20, 3, 0x4f, 0x0d, 1], // if x >= end, leave the block
    [0x20, 1, 0x20, 0, 0x2a, 2, 0, 0x20, 0, 0x2a, 2, 0, 0x92, 0x38, 2, 0], // [y] = [x] + [x]
    [0x20, 0, 0x41, 4, 0x6a, 0x21, 0, 0x20, 1, 0x41, 4, 0x6a, 0x21, 1], // advance both addresses by 4 bytes
    [0x0c, 0, 0x0b, 0x0b, 0x0b], // repeat; end of loop, block, function
  ].flat();
  return Uint8Array.from([
    ...magic,
    ...section(1, 1, 0x60, 3, 0x7f, 0x7f, 0x7f, 0),
    ...section(2, 1, ...name("m"), ...name("memory"), 2, 3, 1, 0x80, 0x80, 4),
    ...section(3, 1, 0),
    ...section(7, 1, ...name("twice"), 0, 0),
    ...section(10, 1, body.length, ...body),
  ]);
};
