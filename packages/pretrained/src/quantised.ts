import { excerpt } from "@skein/tensor-core/backend";
import type { Config } from "./architecture.ts";
import { PretrainedError } from "./errors.ts";

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Describes the quantization of a configuration's weights, such as '"gptq", 4 bits'. Returns undefined if weights are
 * not quantized.
 */
const quantisationOf = ({ quantization_config: given }: Config): string | undefined => {
  if (!isObject(given)) return undefined;
  const { quant_method: method, load_in_4bit: isFourBit, load_in_8bit: isEightBit, bits } = given;
  // Old files of bitsandbytes name no method. Files of unquantized weights may still contain its settings, disabled.
  const isOfBitsAndBytes =
    method === "bitsandbytes" || (method === undefined && (isFourBit ?? isEightBit) !== undefined);
  if (isOfBitsAndBytes && isFourBit !== true && isEightBit !== true) return undefined;
  const name = isOfBitsAndBytes ? '"bitsandbytes"' : method === undefined ? "by no named method" : excerpt(method);
  const width = isOfBitsAndBytes ? (isFourBit === true ? 4 : 8) : bits;
  return [name, ...(typeof width === "number" ? [`${width} bits`] : [])].join(", ");
};

/** Checks that weights are not quantized. @throws PretrainedError if the weights are quantized. */
export const requireUnquantised = (config: Config): void => {
  const quantisation = quantisationOf(config);
  if (quantisation !== undefined)
    throw new PretrainedError(
      `config.json describes quantized weights (quantization_config: ${quantisation}), but only weights in f32, f16 and bf16 are supported; use the original checkpoint before quantization`,
    );
};

/** Last name parts of tensors that quantizers write in addition to a weight, or instead of a weight. */
const parts: ReadonlySet<string> = new Set(
  [
    "qweight qzeros g_idx", // gptq, awq
    "SCB weight_format absmax quant_map nested_absmax nested_quant_map", // bitsandbytes
    "weight_packed weight_scale weight_scale_inv weight_zero_point input_scale", // fp8 and others
  ].flatMap((names) => names.split(" ")),
);

/** Whether a tensor belongs to a quantized weight. */
export const isQuantisedTensor = (name: string): boolean =>
  parts.has(name.slice(name.lastIndexOf(".") + 1)) || name.includes(".quant_state.");
