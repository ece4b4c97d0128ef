import { gelu, relu, silu, type Tensor } from "@skein/tensor-core";
import { z } from "zod";

type Activation = (x: Tensor) => Tensor;

const tanhGelu: Activation = (x) => gelu(x, { approximate: "tanh" });

/** Activation functions by name in transformers. */
const activations: Readonly<Record<string, Activation>> = {
  gelu: (x) => gelu(x),
  gelu_fast: tanhGelu,
  gelu_new: tanhGelu,
  gelu_pytorch_tanh: tanhGelu,
  relu,
  silu,
};

/** Schema of a field that names an activation. Parsing returns the activation function. */
export const activation: z.ZodType<Activation, string> = z
  .enum(Object.keys(activations))
  .transform((name) => activations[name]!);
