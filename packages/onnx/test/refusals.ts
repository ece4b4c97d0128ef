import type { DType } from "@skein/tensor-core";
import type { ConformanceCase } from "@skein/testing";

/** Operators that have no equivalent ONNX operators, or that only gradients need. */
const withoutForm: readonly string[] = [
  "attention-backward",
  "avg-pool2d-backward",
  "batch-norm",
  "batch-norm-backward",
  "bitcast",
  "bitwise-and",
  "bitwise-or",
  "bitwise-xor",
  "cholesky",
  "compact",
  "conv2d-backward-input",
  "conv2d-backward-weight",
  "cross-entropy",
  "cross-entropy-backward",
  "dynamic-slice",
  "dynamic-update-slice",
  "eigh",
  "fold-in",
  "grouped-matmul",
  "grouped-matmul-backward-weight",
  "histogram",
  "layer-norm-backward",
  "log-softmax-backward",
  "max-pool2d-backward",
  "nonzero",
  "pack-bits",
  "qr",
  "random-bits",
  "rms-norm-backward",
  "scatter-add",
  "shift-left",
  "shift-right",
  "softmax-backward",
  "triangular-solve",
  "unpack-bits",
];

/** Dtypes that runtimes do not support, by operator name. */
const otherTypes: Readonly<Record<string, readonly DType[]>> = {
  add: ["u32"],
  argmax: ["u32", "u8", "bool"],
  argmin: ["u32", "u8", "bool"],
  cumsum: ["u32"],
  divide: ["u32"],
  equal: ["u32", "u8", "bool"],
  gather: ["u32"],
  greater: ["u32", "u8", "bool"],
  "greater-equal": ["u32", "u8", "bool"],
  less: ["u32", "u8", "bool"],
  "less-equal": ["u32", "u8", "bool"],
  maximum: ["u32"],
  minimum: ["u32"],
  multiply: ["u32"],
  negate: ["u32"],
  "not-equal": ["u32", "u8", "bool"],
  pad: ["u32"],
  "reduce-max": ["u32", "u8", "bool"],
  "reduce-min": ["u32", "u8", "bool"],
  subtract: ["u32"],
  sum: ["u32"],
  "top-k": ["u32"],
};

interface Refusal {
  /** Name of the rejected operator. For a function of several operators, the name of one of these operators. */
  readonly op: string;
  /** Pattern of the expected message, after the operator's name. */
  readonly why: RegExp;
  /** Returns whether a case may be rejected. */
  readonly of: (one: ConformanceCase) => boolean;
}

const any = (): boolean => true;

/** Individual cases of exported operators that may be rejected. */
const singleCases: readonly Refusal[] = [
  { op: "attention", why: /its result 1 does not exist in ONNX/, of: ({ name }) => name.startsWith("scores up to") },
  { op: "constant", why: /constants of f16 are not supported/, of: ({ name }) => name.endsWith("f16") },
  { op: "constant", why: /do not compute in bf16/, of: ({ name }) => name.endsWith("bf16") },
  { op: "gather", why: /there are no rows to gather from/, of: ({ name }) => name === "from an empty table" },
  { op: "layer-norm", why: /its result 1 does not exist in ONNX/, of: ({ name }) => name === "mean and rstd of rows" },
  { op: "literal", why: /constants of (f16|bf16) are not supported/, of: ({ name }) => name.endsWith("f16") },
  { op: "pad", why: /it pads between elements/, of: ({ op }) => op === "pad" },
  { op: "rms-norm", why: /its result 1 does not exist in ONNX/, of: ({ name }) => name === "rstd of rows" },
  { op: "top-k", why: /it selects by magnitude/, of: ({ op }) => op === "top-k" },
];

/** All cases that may be rejected. The test fails for any other rejection, and for an entry that no case needs. */
export const refusals: readonly Refusal[] = [
  ...withoutForm.map(
    (op): Refusal => ({
      op,
      why: /(no operators of ONNX|no equivalent operators|mixtures of experts are not exported)/,
      of: any,
    }),
  ),
  ...Object.entries(otherTypes).flatMap(([op, dtypes]) =>
    dtypes.map((dtype): Refusal => ({ op, why: new RegExp(`not ${dtype}; cast its operands`), of: any })),
  ),
  ...singleCases,
];

/** Returns the entry of `refusals` that allows the rejection of a case; undefined if there is none. */
export const refusalOf = (one: ConformanceCase, message: string): Refusal | undefined =>
  refusals.find(({ op, why, of }) => message.startsWith(`${op} #`) && why.test(message) && of(one));
