// Measures the time from a plain function to the planned graph of a training step. Run: node bench/compile.bench.ts
import { measure, printMeasurement } from "@skein/measuring";
import {
  adam,
  add,
  applyUpdates,
  attention,
  conv2d,
  crossEntropy,
  elementCount,
  embedding,
  gelu,
  type Graph,
  matmul,
  maxPool2d,
  NdArray,
  relu,
  reshape,
  rmsNorm,
  rotary,
  type Tensor,
  type TensorSpec,
  trace,
  transpose,
  unflattenTree,
  valueAndGrad,
} from "../src/index.ts";
import {
  interpretWorld,
  optimize,
  type OptimizeOptions,
  planMemory,
  type ReferenceArray,
  specOf,
  validateGraph,
} from "../src/backend.ts";

const requireEqual = (actual: Float64Array, expected: Float64Array, label: string): void => {
  const at = expected.findIndex((value, i) => !(Math.abs(value - actual[i]!) <= 1e-9 + 1e-9 * Math.abs(value)));
  if (at >= 0 || actual.length !== expected.length)
    throw new Error(`${label}: element ${at} is ${actual[at]} instead of ${expected[at]}`);
};

interface Problem<P> {
  readonly params: P;
  readonly inputs: Tensor;
  readonly labels: Tensor;
  readonly loss: (params: P, inputs: Tensor, labels: Tensor) => Tensor;
}

/** Creates a spec to pass to `trace` instead of an array. `trace` reads only dtype and shape. */
const tensor = (shape: readonly number[], dtype: TensorSpec["dtype"] = "f32"): Tensor =>
  ({ dtype, shape }) as unknown as Tensor;

type Affine = readonly [weight: Tensor, bias: Tensor];
interface ConvolutionParams {
  readonly convolutions: readonly Affine[];
  readonly head: Affine;
}

/**
 * Creates the training problem of a convolutional network: stages of two convolutions and one pooling, then a dense
 * head.
 */
const convolutional = (batch: number, size: number, channels: readonly number[]): Problem<ConvolutionParams> => {
  const affine = (...shape: number[]): Affine => [tensor(shape), tensor(shape.slice(-1))];
  const left = size >> channels.length;
  return {
    params: {
      convolutions: channels.flatMap((width, i) => [
        affine(3, 3, channels[i - 1] ?? 1, width),
        affine(3, 3, width, width),
      ]),
      head: affine(left * left * channels.at(-1)!, 10),
    },
    inputs: tensor([batch, size, size, 1]),
    labels: tensor([batch], "i32"),
    loss: ({ convolutions, head }, inputs, labels) => {
      const layer = (x: Tensor, [weight, bias]: Affine, i: number): Tensor => {
        const y = relu(add(conv2d(x, weight, { padding: "same" }), bias));
        return i % 2 === 1 ? maxPool2d(y, { window: 2 }) : y;
      };
      return crossEntropy(
        add(matmul(reshape(convolutions.reduce(layer, inputs), [batch, -1]), head[0]), head[1]),
        labels,
      );
    },
  };
};

type Block = readonly [
  norm: Tensor,
  query: Tensor,
  key: Tensor,
  value: Tensor,
  output: Tensor,
  secondNorm: Tensor,
  up: Tensor,
  down: Tensor,
];
interface TransformerParams {
  readonly embedding: Tensor;
  readonly blocks: readonly Block[];
  readonly norm: Tensor;
}

/** Creates the training problem of a decoder-only transformer. */
const transformer = (
  batch: number,
  positions: number,
  width: number,
  numLayers: number,
  numHeads: number,
): Problem<TransformerParams> => {
  const [gain, square] = [tensor([width]), tensor([width, width])];
  const block = (x: Tensor, [norm, query, key, value, output, secondNorm, up, down]: Block): Tensor => {
    const normed = rmsNorm(x, norm);
    const heads = (weight: Tensor): Tensor =>
      transpose(reshape(matmul(normed, weight), [batch, positions, numHeads, width / numHeads]), [0, 2, 1, 3]);
    const seen = attention(rotary(heads(query)), rotary(heads(key)), heads(value), { causal: true });
    const y = add(x, matmul(reshape(transpose(seen, [0, 2, 1, 3]), [batch, positions, width]), output));
    return add(y, matmul(gelu(matmul(rmsNorm(y, secondNorm), up)), down));
  };
  return {
    params: {
      embedding: tensor([256, width]),
      blocks: Array.from(
        { length: numLayers },
        (): Block => [
          gain,
          square,
          square,
          square,
          square,
          gain,
          tensor([width, 4 * width]),
          tensor([4 * width, width]),
        ],
      ),
      norm: gain,
    },
    inputs: tensor([batch, positions], "i32"),
    labels: tensor([batch, positions], "i32"),
    loss: (params, inputs, labels) => {
      const x = params.blocks.reduce(block, embedding(params.embedding, inputs));
      return crossEntropy(matmul(rmsNorm(x, params.norm), params.embedding, { transposeB: true }), labels);
    },
  };
};

/**
 * Traces an Adam step on a problem. Returns the graph, and the indices of its donated inputs, which are parameters and
 * optimizer state.
 */
const record = <P>({
  params,
  inputs,
  labels,
  loss,
}: Problem<P>): { readonly graph: Graph; readonly donate: readonly number[] } => {
  const optimizer = adam({ learningRate: 1e-3 });
  const first = trace((own: P) => optimizer.init(own), [params]);
  const state = unflattenTree<ReturnType<typeof optimizer.init>>(
    first.outputs,
    first.graph.outputs.map((ref) => specOf(first.graph, ref)),
  );
  const step = (own: P, memory: typeof state, x: Tensor, y: Tensor) => {
    const [value, gradients] = valueAndGrad(loss)(own, x, y);
    const [updates, next] = optimizer.update(gradients, memory, { params: own });
    return [applyUpdates(own, updates), next, value] as const;
  };
  const { graph } = trace(step, [params, state, inputs, labels]);
  return { graph, donate: Array.from({ length: graph.inputs.length - 2 }, (_, i) => i) };
};

/** Throws unless an optimized graph computes the same values as the traced graph. */
const checkOptimized = (graph: Graph, options?: OptimizeOptions): void => {
  const optimized = optimize(graph, options);
  const inputs = graph.inputs.map((id, i): ReferenceArray => {
    const spec = graph.nodes[id]!.specs[0]!;
    const wave = Array.from({ length: elementCount(spec.shape) }, (_, at) => Math.sin(at * 1.7 + i));
    const array = NdArray.from(
      spec.dtype === "i32" ? wave.map((value) => Math.floor(5 * (value + 1)) % 10) : wave,
      spec.shape,
      spec.dtype,
    );
    return {
      spec,
      data: Float64Array.from(array.toNumbers(), (value) => (spec.dtype === "i32" ? value : Math.abs(value))),
    };
  });
  const [before, after] = [interpretWorld(graph, [inputs])[0]!, interpretWorld(optimized, [inputs])[0]!];
  before.forEach((expected, i) => requireEqual(after[i]!.data, expected.data, `output ${i}`));
};

const run = async <P>(name: string, small: Problem<P>, large: Problem<P>): Promise<void> => {
  checkOptimized(record(small).graph);
  const { graph, donate } = record(large);
  validateGraph(graph);
  const optimized = optimize(graph);
  validateGraph(optimized);
  const plan = planMemory(optimized, { donate });
  if (plan.workspaceBytes < plan.lowerBoundBytes)
    throw new Error(
      `${name}: a workspace of ${plan.workspaceBytes} bytes cannot hold the ${plan.lowerBoundBytes} that are alive at once`,
    );
  const timing = { samples: 11 };
  printMeasurement(`${name}: trace to ${graph.nodes.length} nodes`, await measure(() => record(large), timing));
  printMeasurement(
    `${name}: optimize to ${optimized.nodes.length} nodes`,
    await measure(() => optimize(graph), timing),
  );
  printMeasurement(
    `${name}: plan ${(plan.workspaceBytes / 1e6).toFixed(1)} MB`,
    await measure(() => planMemory(optimized, { donate }), timing),
  );
};

await run("convolutional, 13 layers", convolutional(2, 4, [2, 3]), convolutional(64, 64, [32, 64, 128, 256, 512, 512]));
await run("transformer, 12 layers", transformer(1, 4, 8, 2, 2), transformer(8, 256, 768, 12, 12));
