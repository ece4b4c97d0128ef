import { type DType, NdArray } from "@skein/tensor-core";
import { InferenceSession, Tensor } from "onnxruntime-node";

const types = { f32: "float32", i32: "int32", u8: "uint8", bool: "bool", u32: "uint32" } as const;

const dtypeOf = (type: string): DType =>
  (Object.keys(types) as (keyof typeof types)[]).find((dtype) => types[dtype] === type)!;

const toOnnx = (array: NdArray): Tensor =>
  new Tensor(types[array.dtype as "f32"], array.data as Float32Array, [...array.shape]);

const fromOnnx = ({ type, data, dims }: Tensor): NdArray =>
  NdArray.from(Array.from(data as unknown as ArrayLike<number>, Number), [...dims], dtypeOf(type));

/**
 * Runs a model with onnxruntime on the CPU. Inputs are passed, and outputs returned, by name.
 * @param model Model as bytes, or the path of its file.
 */
export const runOnnx = async (
  model: Uint8Array | string,
  inputs: Readonly<Record<string, NdArray>>,
): Promise<Record<string, NdArray>> => {
  const options = { logSeverityLevel: 3 } as const;
  const session =
    typeof model === "string"
      ? await InferenceSession.create(model, options)
      : await InferenceSession.create(model, options);
  try {
    const feeds = Object.entries(inputs).filter(([name]) => session.inputNames.includes(name));
    const results = await session.run(Object.fromEntries(feeds.map(([name, array]) => [name, toOnnx(array)])));
    return Object.fromEntries(Object.entries(results).map(([name, tensor]) => [name, fromOnnx(tensor)]));
  } finally {
    await session.release();
  }
};
