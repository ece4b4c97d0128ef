import { createCpuBackend } from "@skein/cpu-kernels";
import { createWebGpuBackend } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import {
  applyUpdates,
  type Backend,
  chain,
  evaluate,
  flattenTree,
  type GradientTransformation,
  type NdArray,
  referenceBackend,
  scaleByLearningRate,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import { expect, test } from "vitest";
import {
  eigenInverse,
  eva,
  evaF,
  evaS,
  findLayers,
  kfac,
  lamb,
  lars,
  type Layer,
  muon,
  observeLayers,
  ownStatistics,
  type Preconditioner,
  shampoo,
  soap,
} from "../src/index.ts";
import { type TestModel, testModels } from "./models.ts";

// One instance per process, because collecting an instance too early aborts the process.
const gpu = await openNodeGpu().catch(() => undefined);
const hasAdapter = Boolean(await gpu?.requestAdapter().catch(() => null));

type Tensors = Readonly<Record<string, Tensor>>;

/**
 * Test models: `convolutional` with convolutions, a norm and a head for optimizers with statistics; `tokens` for all
 * other optimizers, because a norm over two numbers has gradients near 0, whose signs Adam amplifies.
 */
const [, convolutional, tokens] = testModels as readonly TestModel[];

interface Row {
  readonly name: string;
  readonly optimizer: (layers: readonly Layer[]) => GradientTransformation<unknown>;
  /** Creates the preconditioner, for optimizers that use layer statistics. */
  readonly preconditioner?: (layers: readonly Layer[]) => Preconditioner<unknown>;
}

const size = { size: "kl-clip", learningRate: 0.1 } as const;
const preconditioned = (name: string, preconditioner: NonNullable<Row["preconditioner"]>): Row => ({
  name,
  preconditioner,
  optimizer: (layers) => chain(preconditioner(layers), scaleByLearningRate(0.1)) as GradientTransformation<unknown>,
});
const plain = (name: string, optimizer: GradientTransformation<never>): Row => ({
  name,
  optimizer: () => optimizer as GradientTransformation<unknown>,
});

const rows: readonly Row[] = [
  preconditioned("eva", (layers) => eva({ layers, ...size }) as Preconditioner<unknown>),
  preconditioned("eva-f", (layers) => evaF({ layers, ...size }) as Preconditioner<unknown>),
  preconditioned("kfac", (layers) => kfac({ layers, damping: 0.1, ...size }) as Preconditioner<unknown>),
  preconditioned(
    "kfac, reduced positions",
    (layers) => kfac({ layers, damping: 0.1, positions: "reduce", ...size }) as Preconditioner<unknown>,
  ),
  preconditioned(
    "kfac by eigenvectors of blocks",
    (layers) => kfac({ layers, damping: 0.1, inverse: eigenInverse, blockSize: 4, ...size }) as Preconditioner<unknown>,
  ),
  plain("eva-s", chain(evaS(size), scaleByLearningRate(0.1)) as never),
  plain("shampoo", chain(shampoo({ ridge: 1e-3 }), scaleByLearningRate(0.1)) as never),
  // Only the shorter sides have bases: few gradients leave directions of longer sides undetermined, so that rounding
  // would decide.
  plain("soap", soap({ learningRate: 0.1, largestSide: 3 }) as never),
  plain("muon", muon({ learningRate: 0.1, isHidden: () => true }) as never),
  plain("lars", lars({ learningRate: 0.1 }) as never),
  plain("lamb", lamb({ learningRate: 0.1 }) as never),
];

/** Returns the parameters after two steps. */
const trained = async ({ optimizer: build, preconditioner }: Row, backend: Backend): Promise<number[]> => {
  const model = (preconditioner === undefined ? tokens : convolutional)!;
  const batch = model.batch(4, 10);
  const { layers } = findLayers(valueAndGrad(model.loss), [model.params as never, batch as never]);
  const optimizer = build(layers);
  const step = (params: Tensors, samples: Tensors): Tensors => {
    let [own, state] = [params, optimizer.init(params)];
    for (let number = 0; number < 2; number++) {
      let gradients: Tensors;
      if (preconditioner === undefined) [, gradients] = valueAndGrad(model.loss)(own, samples);
      else {
        const { result, statistics } = observeLayers(valueAndGrad(model.loss), [own, samples], {
          statistic: preconditioner(layers).statistic,
          samples: 4,
          collector: ownStatistics(),
        });
        [, gradients] = result;
        state = optimizer.observe!(state, statistics as never);
      }
      const [updates, next] = optimizer.update(gradients, state, { params: own });
      [own, state] = [applyUpdates(own, updates), next];
    }
    return own;
  };
  const result = await evaluate(step, backend)(model.params as never, batch as never);
  return flattenTree<NdArray>(result).leaves.flatMap((array) => array.toNumbers());
};

const expectSame = async (row: Row, backend: Backend): Promise<void> => {
  const [expected, got] = [await trained(row, referenceBackend()), await trained(row, backend)];
  got.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-3 * (1 + Math.abs(expected[i]!))));
};

test.each(rows)("$name on WebAssembly trains like the reference", async (row) => {
  await expectSame(row, await createCpuBackend());
});

test.skipIf(!hasAdapter).each(rows)("$name on WebGPU trains as on the reference", async (row) => {
  const backend = await createWebGpuBackend({ gpu: gpu! });
  try {
    await expectSame(row, backend);
  } finally {
    await backend.close();
  }
});
