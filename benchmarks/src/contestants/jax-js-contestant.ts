import * as jax from "@jax-js/jax";
import type { Contestant, PreparedProblem } from "../measure/contestant.ts";
import type { GptSizes } from "../problems/problem.ts";
import { sampleOf } from "../problems/sample.ts";
import type { LoadedProblem, LoadedTensor } from "../problems/values.ts";

const { lax, nn, numpy: np } = jax;
type Array = jax.Array;
type Params = Record<string, Array>;

const checkedSteps = 5;

const load = (value: LoadedTensor): Array =>
  np.array(value.data as Float32Array<ArrayBuffer>).reshape([...value.shape]);

/**
 * Computes the logits of the MLP or CNN problem. jax-js operations consume their operands, so an array that is used
 * again is passed as `.ref`.
 */
const classifier = (params: Params, images: Array): Array => {
  const dense = (x: Array, layer: number): Array =>
    np.matmul(x, params[`weight${layer}`]!).add(params[`bias${layer}`]!);
  if (params.weight4 === undefined) return dense(nn.relu(dense(nn.relu(dense(images, 1)), 2)), 3);
  const block = (x: Array, layer: number): Array => {
    const [convolution, bias] = [params[`weight${layer}`]!, params[`bias${layer}`]!];
    const convolved = lax.convGeneralDilated(x, convolution, [1, 1], "SAME").add(bias.reshape([-1, 1, 1]));
    return lax.reduceWindow(nn.relu(convolved), np.max, [2, 2], [2, 2]);
  };
  const pooled = block(block(images, 1), 2);
  return dense(nn.relu(dense(pooled.reshape([pooled.shape[0]!, -1]), 3)), 4);
};

/**
 * Computes the logits of the GPT problem. Each use of an array except the last goes through `.ref`, because an
 * operation consumes its operands.
 */
const languageModel = (
  { batch, positions, width, layers, heads, vocabulary }: GptSizes,
  params: Params,
  tokens: Array,
): Array => {
  const norm = (x: Array, gain: Array): Array => {
    const centred = x.ref.sub(np.mean(x, -1, { keepdims: true }));
    const variance = np.mean(np.square(centred.ref), -1, { keepdims: true });
    return centred.div(np.sqrt(variance.add(1e-5))).mul(gain);
  };
  const split = (x: Array): Array => x.reshape([batch, positions, heads, width / heads]);
  const embedding = params.weightEmbedding!;
  let x = np.take(embedding.ref, tokens, 0).add(params.weightPositions!);
  for (let layer = 0; layer < layers; layer++) {
    const weight = (name: string): Array => params[`weight${layer}${name}`]!;
    const h = norm(x.ref, params[`gain${layer}Attention`]!);
    const [q, k] = ["Query", "Key"].map((name) => split(np.matmul(h.ref, weight(name)))) as [Array, Array];
    const v = split(np.matmul(h, weight("Value")));
    const y = nn.dotProductAttention(q, k, v, { isCausal: true }).reshape([batch, positions, width]);
    x = x.add(np.matmul(y, weight("Output")));
    const up = np.matmul(norm(x.ref, params[`gain${layer}FeedForward`]!), weight("Up"));
    x = x.add(np.matmul(nn.gelu(up, { approximate: true }), weight("Down")));
  }
  return np.matmul(norm(x, params.gainFinal!), np.transpose(embedding)).reshape([-1, vocabulary]);
};

/**
 * Permutes a tensor from the file's layout to the library's layout: images from NHWC to NCHW, convolution filters from
 * HWIO to OIHW. Rows of the first dense layer's weight are reordered, because flattened images have another element
 * order.
 */
const permute = (name: string, array: Array, convolutional: boolean): Array => {
  if (!convolutional) return array;
  if (name === "images") return np.transpose(array, [0, 3, 1, 2]);
  if (name === "weight1" || name === "weight2") return np.transpose(array, [3, 2, 0, 1]);
  if (name === "weight3") return np.transpose(array.reshape([7, 7, 64, 128]), [2, 0, 1, 3]).reshape([-1, 128]);
  return array;
};

const prepare = async (problem: LoadedProblem, settle: () => Promise<unknown>): Promise<PreparedProblem> => {
  if (problem.kind === "matmul") {
    const a = load(problem.values.a!);
    const b = load(problem.values.b!);
    const multiply = jax.jit((x: Array, y: Array) => np.matmul(x, y));
    const checks = sampleOf(globalThis.Array.from(await multiply(a.ref, b.ref).data()));
    return {
      checks,
      run: async () => {
        // jax-js is lazy: it computes nothing until the result is awaited.
        const product = await multiply(a.ref, b.ref).blockUntilReady();
        await settle();
        product.dispose();
      },
    };
  }
  const convolutional = problem.values.weight4 !== undefined;
  const named = Object.entries(problem.values).map(
    ([name, value]) => [name, permute(name, load(value), convolutional)] as const,
  );
  const { images, tokens, labels, ...initial } = Object.fromEntries(named) as Params;
  const inputs = (tokens ?? images)!;
  const { gpt } = problem;
  const network = (from: Params, x: Array): Array =>
    gpt === undefined ? classifier(from, x) : languageModel(gpt, from, x);
  const targets = nn.oneHot(labels!.reshape([-1]), gpt?.vocabulary ?? 10);
  const loss = (params: Params, x: Array, y: Array): Array =>
    np.mean(np.sum(nn.logSoftmax(network(params, x)).mul(y), -1)).mul(-1);
  const update = jax.jit((params: Params, x: Array, y: Array): [Array, Params] => {
    const [value, gradients] = jax.valueAndGrad(loss)(jax.tree.ref(params), x, y) as unknown as [Array, Params];
    const next = Object.keys(params).map((name) => [
      name,
      params[name]!.sub(gradients[name]!.mul(problem.learningRate)),
    ]);
    return [value, Object.fromEntries(next)];
  });
  let params: Params = initial;
  const step = async (): Promise<number> => {
    const [value, next] = update(params, inputs.ref, targets.ref);
    params = next; // outputs of the same run as the loss, so reading the loss waits for them too
    return (await value.data())[0]!;
  };
  const checks: number[] = [];
  for (let i = 0; i < checkedSteps; i++) checks.push(await step());
  return { checks, run: async () => void (await step()) };
};

/**
 * Returns the implementation that computes with jax-js on its default device.
 *
 * @param settle Waits until the device has finished all submitted work.
 */
export const jaxContestant = (version: string, settle: () => Promise<unknown> = async () => undefined): Contestant => ({
  version,
  prepare: (problem) => prepare(problem, settle),
});
