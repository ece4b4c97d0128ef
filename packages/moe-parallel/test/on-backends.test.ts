import { createCpuBackend } from "@skein/cpu-kernels";
import { createWebGpuBackend } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import {
  add,
  type Backend,
  evaluate,
  flattenTree,
  multiply,
  NdArray,
  referenceBackend,
  sum,
  type Tensor,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import { expect, test } from "vitest";
import {
  byBatchPriority,
  byProbability,
  capacityByFactor,
  capacityByMaximum,
  duplicateFreeDispatcher,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  type MoeLayerOptions,
  raggedDispatcher,
  swigluExperts,
} from "../src/index.ts";
import { type GateRow, gateRows } from "./gate-rows.ts";
import { keyOf } from "./tokens.ts";

// One instance per process, because collecting an instance too early aborts the process.
const gpu = await openNodeGpu().catch(() => undefined);
const hasAdapter = Boolean(await gpu?.requestAdapter().catch(() => null));

type Options = MoeLayerOptions<unknown, unknown, unknown, unknown>;

const [width, numExperts, numTokens] = [6, 4, 20];
const sizes = { width, hidden: 8, deviation: 0.5, outputDeviation: 0.5 };

/** Options of a layer that run different code on the backend, assigned to the gates in turn. */
const ways: readonly Omit<Options, "gate">[] = [
  { experts: geluExperts(sizes), capacity: capacityByFactor({ factor: 0.75, dropOrder: byProbability }) },
  { experts: swigluExperts(sizes), capacity: capacityByMaximum(), dispatcher: raggedDispatcher() },
  {
    experts: geluExperts(sizes),
    shared: swigluExperts(sizes),
    capacity: capacityByFactor({ factor: 1, dropOrder: byBatchPriority }),
    normalisation: "after-dropping",
    placement: [2, 0, 3, 1],
  },
  {
    experts: swigluExperts(sizes),
    capacity: capacityByFactor({ factor: 1 }),
    normalisation: "before-dropping",
    dispatcher: raggedDispatcher(),
  },
  {
    experts: geluExperts(sizes),
    capacity: capacityByMaximum(),
    dispatcher: hierarchicalDispatcher({ axes: ["hosts", "inside"] }),
    chunks: 2,
  },
  {
    experts: swigluExperts(sizes),
    capacity: capacityByFactor({ factor: 0.75, dropOrder: byProbability }),
    dispatcher: duplicateFreeDispatcher({ axes: ["hosts", "inside"] }),
    chunks: 3,
    placement: [2, 0, 3, 1],
  },
] as never;

const rows = gateRows.flatMap(({ name, gate }, i) =>
  [0, 1].map((more) => {
    const way = (2 * i + more + (i >> 1)) % ways.length;
    return { name: `${name}, way ${way + 1}`, gate, options: ways[way]! };
  }),
);

interface Row {
  readonly gate: GateRow["gate"];
  readonly options: Omit<Options, "gate">;
}

/** Returns the output, all gradients, the state and the metrics of one step. */
const stepped = async ({ gate, options }: Row, backend: Backend): Promise<number[][]> => {
  const layer = moeLayer({ gate: gate({ width, numExperts }), ...options });
  const step = (x: Tensor, cotangent: Tensor, key: Tensor) => {
    const { params, state } = layer.init(key);
    const loss = ({ own, tokens }: { readonly own: typeof params; readonly tokens: Tensor }) => {
      const [y, next, report] = layer.apply(own, state, tokens, { train: true, key });
      return [add(sum(multiply(y, cotangent)), report.loss), [y, next, report]] as const;
    };
    return valueAndGradWithAux(loss)({ own: params, tokens: x });
  };
  const wave = (seed: number): NdArray =>
    NdArray.from(
      Array.from({ length: numTokens * width }, (_, i) => 3 * Math.sin(seed * (i + 1))),
      [numTokens, width],
      "f32",
    );
  const result: unknown = await evaluate(step, backend)(wave(1.7), wave(0.9), keyOf(4));
  return flattenTree<NdArray>(result).leaves.map((array) => array.toNumbers());
};

const expectSame = async (row: Row, backend: Backend): Promise<void> => {
  const [expected, got] = [await stepped(row, referenceBackend()), await stepped(row, backend)];
  expect(got).toHaveLength(expected.length);
  expected.forEach((numbers, leaf) => {
    const most = numbers.reduce((greatest, value) => Math.max(greatest, Math.abs(value)), 1);
    numbers.forEach((value, i) => expect(Math.abs(got[leaf]![i]! - value) / most, `leaf ${leaf}`).toBeLessThan(1e-4));
  });
};

test.each(rows)("$name on WebAssembly computes the reference's result", async (row) => {
  await expectSame(row, await createCpuBackend());
});

// Every second row only: software adapters take long to compile fused shaders.
test.skipIf(!hasAdapter).each(rows.filter((_, i) => i % 2 === 0))(
  "$name on WebGPU computes the reference's result",
  async (row) => {
    const backend = await createWebGpuBackend({ gpu: gpu! });
    try {
      await expectSame(row, backend);
    } finally {
      await backend.close();
    }
  },
);
