import * as tf from "@tensorflow/tfjs";
import type { Contestant, PreparedProblem } from "../measure/contestant.ts";
import type { GptSizes } from "../problems/problem.ts";
import { sampleOf } from "../problems/sample.ts";
import type { LoadedProblem, LoadedTensor } from "../problems/values.ts";

const checkedSteps = 5;

const load = (value: LoadedTensor): tf.Tensor =>
  tf.tensor(value.data, [...value.shape], value.dtype === "i32" ? "int32" : "float32");

const classifier = (params: Readonly<Record<string, tf.Tensor>>, images: tf.Tensor): tf.Tensor2D => {
  const dense = (x: tf.Tensor, layer: number): tf.Tensor =>
    tf.add(tf.matMul(x, params[`weight${layer}`]!), params[`bias${layer}`]!);
  if (params.weight4 === undefined) return dense(tf.relu(dense(tf.relu(dense(images, 1)), 2)), 3) as tf.Tensor2D;
  const block = (x: tf.Tensor, layer: number): tf.Tensor => {
    const convolved = tf.conv2d(x as tf.Tensor4D, params[`weight${layer}`] as tf.Tensor4D, 1, "same");
    return tf.maxPool(tf.relu(tf.add(convolved, params[`bias${layer}`]!)) as tf.Tensor4D, 2, 2, "valid");
  };
  const pooled = block(block(images, 1), 2);
  return dense(tf.relu(dense(tf.reshape(pooled, [pooled.shape[0]!, -1]), 3)), 4) as tf.Tensor2D;
};

type Params = Readonly<Record<string, tf.Tensor>>;

/**
 * Returns the mask of [positions, positions] that is added to attention scores, so that no position attends to a later
 * position.
 */
const causalMask = (positions: number): tf.Tensor2D =>
  tf.tensor2d(
    Array.from({ length: positions }, (_, i) => Array.from({ length: positions }, (__, j) => (j <= i ? 0 : -1e9))),
  );

const languageModel = (
  { batch, positions, width, layers, heads }: GptSizes,
  mask: tf.Tensor2D,
  params: Params,
  tokens: tf.Tensor,
): tf.Tensor2D => {
  const product = (x: tf.Tensor, weight: tf.Tensor): tf.Tensor =>
    tf.matMul(tf.reshape(x, [-1, x.shape.at(-1)!]), weight);
  const norm = (x: tf.Tensor, gain: tf.Tensor): tf.Tensor => {
    const { mean, variance } = tf.moments(x, -1, true);
    return tf.mul(tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5))), gain);
  };
  const gelu = (x: tf.Tensor): tf.Tensor =>
    tf.mul(
      tf.mul(0.5, x),
      tf.add(1, tf.tanh(tf.mul(Math.sqrt(2 / Math.PI), tf.add(x, tf.mul(0.044715, tf.mul(x, tf.mul(x, x))))))),
    );
  const split = (x: tf.Tensor): tf.Tensor =>
    tf.transpose(tf.reshape(x, [batch, positions, heads, width / heads]), [0, 2, 1, 3]);
  const embedding = params.weightEmbedding as tf.Tensor2D;
  let x = tf.reshape(tf.add(tf.gather(embedding, tf.cast(tokens, "int32")), params.weightPositions!), [-1, width]);
  for (let layer = 0; layer < layers; layer++) {
    const weight = (name: string): tf.Tensor => params[`weight${layer}${name}`]!;
    const h = norm(x, params[`gain${layer}Attention`]!);
    const [q, k, v] = ["Query", "Key", "Value"].map((name) => split(product(h, weight(name)))) as [
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
    ];
    const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(width / heads)), mask);
    const y = tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), [0, 2, 1, 3]), [-1, width]);
    x = tf.add(x, product(y, weight("Output")));
    x = tf.add(x, product(gelu(product(norm(x, params[`gain${layer}FeedForward`]!), weight("Up"))), weight("Down")));
  }
  return tf.matMul(norm(x, params.gainFinal!) as tf.Tensor2D, embedding, false, true);
};

/**
 * Returns the implementation that computes with TensorFlow.js on its current backend.
 *
 * @param settle Waits until the backend has finished all submitted work.
 */
export const tfjsContestant = (settle: () => Promise<unknown> = async () => undefined): Contestant => {
  const prepare = async (problem: LoadedProblem): Promise<PreparedProblem> => {
    if (problem.kind === "matmul") {
      const a = load(problem.values.a!);
      const b = load(problem.values.b!);
      const product = tf.matMul(a, b);
      const checks = sampleOf(Array.from(await product.data()));
      product.dispose();
      return {
        checks,
        run: async () => {
          tf.matMul(a, b).dispose();
          await settle();
        },
      };
    }
    const { gpt } = problem;
    const inputs = load((problem.values.tokens ?? problem.values.images)!);
    const numClasses = gpt?.vocabulary ?? 10;
    const labels = tf.tidy(() =>
      tf.reshape(tf.oneHot(tf.cast(load(problem.values.labels!), "int32"), numClasses), [-1, numClasses]),
    );
    const mask = gpt && causalMask(gpt.positions);
    const network = (from: Params, x: tf.Tensor): tf.Tensor2D =>
      gpt === undefined || mask === undefined ? classifier(from, x) : languageModel(gpt, mask, from, x);
    const params = Object.fromEntries(
      Object.entries(problem.values)
        .filter(([name]) => /^(weight|bias|gain)/.test(name))
        .map(([name, value]) => [name, tf.variable(load(value))]),
    );
    const optimizer = tf.train.sgd(problem.learningRate);
    const step = async (): Promise<number> => {
      const loss = tf.tidy(
        () =>
          optimizer.minimize(() => tf.losses.softmaxCrossEntropy(labels, network(params, inputs)) as tf.Scalar, true)!,
      );
      const [value] = await loss.data();
      loss.dispose();
      return value!;
    };
    const checks: number[] = [];
    for (let i = 0; i < checkedSteps; i++) checks.push(await step());
    return { checks, run: async () => void (await step()) };
  };
  return { version: tf.version_core, prepare };
};
