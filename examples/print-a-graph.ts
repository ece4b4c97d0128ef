// Traces a training step and prints its graph in readable form, with the cost of each node.
import {
  add,
  crossEntropy,
  matmul,
  multiply,
  printGraph,
  relu,
  subtract,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";

interface Params {
  readonly weight: Tensor;
  readonly bias: Tensor;
}

const loss = ({ weight, bias }: Params, x: Tensor, labels: Tensor): Tensor =>
  crossEntropy(relu(add(matmul(x, weight), bias)), labels);

const step = (params: Params, x: Tensor, labels: Tensor): Params => {
  const [, gradients] = valueAndGrad(loss)(params, x, labels);
  return {
    weight: subtract(params.weight, multiply(gradients.weight, 0.1)),
    bias: subtract(params.bias, multiply(gradients.bias, 0.1)),
  };
};

const f32 = (...shape: number[]) => ({ dtype: "f32", shape }) as const;
const { graph } = trace(step, [{ weight: f32(784, 10), bias: f32(10) }, f32(64, 784), { dtype: "i32", shape: [64] }]);
console.log(printGraph(graph, { cost: true }));
