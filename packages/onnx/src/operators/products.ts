import { type Emitter, knownNumbers, requireTypes, param } from "./emitter.ts";

type Pairs = readonly (readonly [number, number])[];

const matmul: Emitter = ({ node, inputs, specs, writer }) => {
  requireTypes(node, specs, ["f32"]);
  const operands = inputs.map((name, i) => {
    if (!param<boolean>(node, i === 0 ? "transposeA" : "transposeB")) return name;
    const rank = specs[i]!.shape.length;
    const perm = Array.from({ length: rank }, (_, dim) => (dim < rank - 2 ? dim : 2 * rank - 3 - dim));
    return writer.node("Transpose", [name], { perm });
  });
  return writer.node("MatMul", operands);
};

/** Permutation from Skein's layout, channels last, to ONNX's layout, channels first. */
const channelsFirst = [0, 3, 1, 2] as const;
const channelsLast = [0, 2, 3, 1] as const;

/** Returns the pads in ONNX order: leading rows and columns, then trailing rows and columns. */
const padsOf = (pairs: Pairs): number[] => [pairs[0]![0], pairs[1]![0], pairs[0]![1], pairs[1]![1]];

const convolution: Emitter = ({ node, inputs: [x, weight], specs, writer }) => {
  requireTypes(node, specs, ["f32"]);
  const result = writer.node(
    "Conv",
    [
      writer.node("Transpose", [x!], { perm: channelsFirst }),
      writer.node("Transpose", [weight!], { perm: [3, 2, 0, 1] }),
    ],
    {
      strides: knownNumbers(node, "stride"),
      dilations: knownNumbers(node, "dilation"),
      pads: padsOf(param<Pairs>(node, "padding")),
      group: param<number>(node, "groups"),
    },
  );
  return writer.node("Transpose", [result], { perm: channelsLast });
};

const pooling =
  (op: "MaxPool" | "AveragePool"): Emitter =>
  ({ node, inputs, writer }) => {
    const first = writer.node("Transpose", inputs, { perm: channelsFirst });
    const result = writer.node(op, [first], {
      kernel_shape: knownNumbers(node, "window"),
      strides: knownNumbers(node, "stride"),
      pads: padsOf(param<Pairs>(node, "padding")),
      ...(op === "AveragePool" && { count_include_pad: param<boolean>(node, "countPadding") ? 1 : 0 }),
    });
    return writer.node("Transpose", [result], { perm: channelsLast });
  };

type ProductName = "avg-pool2d" | "conv2d" | "matmul" | "max-pool2d";

/** Emitters of matrix products, convolutions and pooling. */
export const products: { readonly [op in ProductName]: Emitter } = {
  "avg-pool2d": pooling("AveragePool"),
  conv2d: convolution,
  matmul: matmul,
  "max-pool2d": pooling("MaxPool"),
};
