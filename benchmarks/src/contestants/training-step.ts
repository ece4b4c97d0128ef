import {
  add,
  applyUpdates,
  attention,
  type Backend,
  conv2d,
  crossEntropy,
  embedding,
  flatten,
  gelu,
  jit,
  layerNorm,
  matmul,
  maxPool2d,
  mixedPrecision,
  NdArray,
  relu,
  reshape,
  sgd,
  type Tensor,
  transpose,
  valueAndGrad,
  zeros,
} from "@skein/tensor-core";
import type { GptSizes } from "../problems/problem.ts";
import type { LoadedProblem, LoadedTensor } from "../problems/values.ts";

type Params = Readonly<Record<string, Tensor>>;

/** Converts a tensor of a problem to a host array. */
export const hostArray = (value: LoadedTensor): NdArray =>
  new NdArray(value.dtype, value.shape, value.data as Float32Array<ArrayBuffer>);

const classifier = (params: Params, images: Tensor): Tensor => {
  const dense = (x: Tensor, layer: number): Tensor =>
    add(matmul(x, params[`weight${layer}`]!), params[`bias${layer}`]!);
  if (params.weight4 === undefined) return dense(relu(dense(relu(dense(images, 1)), 2)), 3);
  const block = (x: Tensor, layer: number): Tensor =>
    maxPool2d(relu(add(conv2d(x, params[`weight${layer}`]!, { padding: "same" }), params[`bias${layer}`]!)), {
      window: 2,
    });
  return dense(relu(dense(flatten(block(block(images, 1), 2), { first: 1 }), 3)), 4);
};

/** Computes logits_BTV from tokens; axis letters as in packages/models. */
const languageModel = (
  { batch, positions, width, layers, heads }: GptSizes,
  params: Params,
  tokens_BT: Tensor,
): Tensor => {
  const norm = (x: Tensor, gain: Tensor): Tensor => layerNorm(x, gain, zeros([width]));
  const split = (x_BTD: Tensor): Tensor =>
    transpose(reshape(x_BTD, [batch, positions, heads, width / heads]), [0, 2, 1, 3]);
  let x_BTD = add(embedding(params.weightEmbedding!, tokens_BT), params.weightPositions!);
  for (let layer = 0; layer < layers; layer++) {
    const weight = (name: string): Tensor => params[`weight${layer}${name}`]!;
    const h = norm(x_BTD, params[`gain${layer}Attention`]!);
    const [q, k, v] = ["Query", "Key", "Value"].map((name) => split(matmul(h, weight(name)))) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const y = transpose(attention(q, k, v, { causal: true }), [0, 2, 1, 3]);
    x_BTD = add(x_BTD, matmul(reshape(y, [batch, positions, width]), weight("Output")));
    const up = matmul(norm(x_BTD, params[`gain${layer}FeedForward`]!), weight("Up"));
    x_BTD = add(x_BTD, matmul(gelu(up, { approximate: "tanh" }), weight("Down")));
  }
  return matmul(norm(x_BTD, params.gainFinal!), params.weightEmbedding!, { transposeB: true });
};

/**
 * Returns Skein's training step for a problem: forward, backward and SGD in one compiled graph, parameters updated in
 * place.
 */
export const trainingStep = (
  backend: Backend,
  { learningRate, values, gpt, precision }: LoadedProblem,
): { readonly step: () => Promise<number> } => {
  const optimizer = sgd({ learningRate });
  const network = (params: Params, inputs: Tensor): Tensor =>
    gpt === undefined ? classifier(params, inputs) : languageModel(gpt, params, inputs);
  const update = jit(
    (params: Params, inputs: Tensor, labels: Tensor) => {
      const [loss, gradients] = valueAndGrad((p: Params) => crossEntropy(network(p, inputs), labels))(params);
      const [updates] = optimizer.update(gradients, optimizer.init(params), { params });
      return { loss, params: applyUpdates(params, updates) };
    },
    backend,
    { donate: [0], passes: precision === "mixed-f16" ? [(graph) => mixedPrecision(graph)] : [] },
  );
  const upload = (name: string) => backend.upload(hostArray(values[name]!));
  const [inputs, labels] = [upload(gpt === undefined ? "images" : "tokens"), upload("labels")];
  const names = Object.keys(values).filter((name) => /^(weight|bias|gain)/.test(name));
  let params = Object.fromEntries(names.map((name) => [name, upload(name)]));
  const step = async (): Promise<number> => {
    const next = await update(params, inputs, labels);
    params = next.params;
    const loss = (await backend.download(next.loss)).item();
    backend.free(next.loss);
    return loss;
  };
  return { step };
};
