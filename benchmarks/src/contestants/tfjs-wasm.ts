import { setThreadsCount } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { type PreparedProblem, serve } from "../measure/serve.ts";
import { type LoadedTensor, readProblem } from "../problems/problem.ts";

const checkedSteps = 5;

const load = (value: LoadedTensor): tf.Tensor => tf.tensor(value.data, [...value.shape], value.dtype === "i32" ? "int32" : "float32");

const network = (params: Readonly<Record<string, tf.Tensor>>, images: tf.Tensor): tf.Tensor2D => {
  const dense = (x: tf.Tensor, layer: number): tf.Tensor => tf.add(tf.matMul(x, params[`weight${layer}`]!), params[`bias${layer}`]!);
  if (params.weight4 === undefined) return dense(tf.relu(dense(tf.relu(dense(images, 1)), 2)), 3) as tf.Tensor2D;
  const block = (x: tf.Tensor, layer: number): tf.Tensor => {
    const convolved = tf.conv2d(x as tf.Tensor4D, params[`weight${layer}`] as tf.Tensor4D, 1, "same");
    return tf.maxPool(tf.relu(tf.add(convolved, params[`bias${layer}`]!)) as tf.Tensor4D, 2, 2, "valid");
  };
  const pooled = block(block(images, 1), 2);
  return dense(tf.relu(dense(tf.reshape(pooled, [pooled.shape[0]!, -1]), 3)), 4) as tf.Tensor2D;
};

const prepare = async (_name: string, folder: string): Promise<PreparedProblem> => {
  const problem = readProblem(folder);
  if (problem.kind === "matmul") {
    const a = load(problem.values.a!);
    const b = load(problem.values.b!);
    const product = tf.matMul(a, b);
    const checks = Array.from(product.dataSync());
    product.dispose();
    return { checks, run: () => tf.matMul(a, b).dispose() };
  }
  const images = load(problem.values.images!);
  const labels = tf.tidy(() => tf.oneHot(tf.cast(load(problem.values.labels!), "int32"), 10));
  const params = Object.fromEntries(
    Object.entries(problem.values)
      .filter(([name]) => /^(weight|bias)/.test(name))
      .map(([name, value]) => [name, tf.variable(load(value))]),
  );
  const optimizer = tf.train.sgd(problem.learningRate);
  const step = (): number =>
    tf.tidy(
      () => optimizer.minimize(() => tf.losses.softmaxCrossEntropy(labels, network(params, images)) as tf.Scalar, true)!.dataSync()[0]!,
    );
  const checks = Array.from({ length: checkedSteps }, step);
  return { checks, run: () => void step() };
};

await tf.setBackend("wasm");
await tf.ready();
setThreadsCount(1);
await serve({ version: tf.version_core, prepare });
