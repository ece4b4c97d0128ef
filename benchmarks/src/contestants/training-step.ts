import type { CpuBackend } from "@skein/cpu-kernels";
import {
  add,
  applyUpdates,
  conv2d,
  crossEntropy,
  flatten,
  jit,
  matmul,
  maxPool2d,
  NdArray,
  relu,
  sgd,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import type { LoadedTensor, readProblem } from "../problems/problem.ts";

type Params = Readonly<Record<string, Tensor>>;

/** A tensor of a problem as a host array. */
export const hostArray = (value: LoadedTensor): NdArray => new NdArray(value.dtype, value.shape, value.data as Float32Array<ArrayBuffer>);

const network = (params: Params, images: Tensor): Tensor => {
  const dense = (x: Tensor, layer: number): Tensor => add(matmul(x, params[`weight${layer}`]!), params[`bias${layer}`]!);
  if (params.weight4 === undefined) return dense(relu(dense(relu(dense(images, 1)), 2)), 3);
  const block = (x: Tensor, layer: number): Tensor =>
    maxPool2d(relu(add(conv2d(x, params[`weight${layer}`]!, { padding: "same" }), params[`bias${layer}`]!)), { window: 2 });
  return dense(relu(dense(flatten(block(block(images, 1), 2), 1), 3)), 4);
};

/** Our training step of a problem: forward, backward and SGD in one compiled graph, parameters updated in place. */
export const trainingStep = (
  backend: CpuBackend,
  { learningRate, values }: ReturnType<typeof readProblem>,
): { readonly step: () => Promise<number> } => {
  const optimizer = sgd({ learningRate });
  const update = jit(
    (params: Params, images: Tensor, labels: Tensor) => {
      const [loss, gradients] = valueAndGrad((p: Params) => crossEntropy(network(p, images), labels))(params);
      const [updates] = optimizer.update(gradients, optimizer.init(params), { params });
      return { loss, params: applyUpdates(params, updates) };
    },
    backend,
    { donate: [0] },
  );
  const upload = (name: string) => backend.upload(hostArray(values[name]!));
  const [images, labels] = [upload("images"), upload("labels")];
  const names = Object.keys(values).filter((name) => /^(weight|bias)/.test(name));
  let params = Object.fromEntries(names.map((name) => [name, upload(name)]));
  const step = async (): Promise<number> => {
    const next = await update(params, images, labels);
    params = next.params;
    const loss = (await backend.download(next.loss)).item();
    backend.free(next.loss);
    return loss;
  };
  return { step };
};
