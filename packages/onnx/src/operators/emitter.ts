import type { DType } from "@skein/tensor-core";
import { isKnown } from "../affine.ts";
import { OnnxError } from "../errors.ts";
import type { MergedNode, MergedSpec, MergedValue } from "../merge-traces.ts";
import type { ConstantType, ModelWriter } from "../model-writer.ts";
import { typeCode } from "../proto.ts";

/** Arguments of an emitter. */
export interface EmitInput {
  readonly node: MergedNode;
  /** Names of the operands, in the order of `specs`. */
  readonly inputs: readonly string[];
  readonly specs: readonly MergedSpec[];
  readonly writer: ModelWriter;
}

/**
 * Function that emits the ONNX nodes of an operator.
 * @returns the names of the operator's results; undefined for a result without an ONNX equivalent.
 */
export type Emitter = (input: EmitInput) => string | readonly (string | undefined)[];

/** Emits no node, because the results of the operator equal its operands. Returns the names of the operands. */
export const same: Emitter = ({ inputs }) => inputs;

/** Default reason why an operator is not exported, with a suggested fix. */
export const noEquivalent = "ONNX has no equivalent operators; remove it from the exported function";

/** Throws an OnnxError for a node that has no ONNX equivalent, with the reason. */
export const rejectNode = ({ op, id, scope }: MergedNode, reason: string): never => {
  throw new OnnxError(`${op} #${id}${scope === "" ? "" : ` of ${scope}`} cannot be exported to ONNX: ${reason}`);
};

/**
 * Checks the dtypes of operands.
 * @throws OnnxError if runtimes do not support the dtype of an operand.
 */
export const requireTypes = (node: MergedNode, specs: readonly MergedSpec[], known: readonly DType[]): void => {
  const other = specs.find(({ dtype }) => !known.includes(dtype));
  if (other !== undefined)
    rejectNode(node, `runtimes support ${known.join(" and ")}, not ${other.dtype}; cast its operands`);
};

const constantTypes: readonly DType[] = ["f32", "i32", "u32", "u8", "bool"] satisfies readonly ConstantType[];

/**
 * Returns `dtype` as the type of an ONNX constant.
 * @throws OnnxError if ONNX constants cannot have this dtype.
 */
export const requireConstantType = (node: MergedNode, dtype: DType): ConstantType =>
  constantTypes.includes(dtype)
    ? (dtype as ConstantType)
    : rejectNode(node, `constants of ${dtype} are not supported; use f32 and cast it`);

/**
 * Returns the parameter `key` of a node: a list of numbers that must not depend on the batch size.
 * @throws OnnxError if a number depends on the batch size.
 */
export const knownNumbers = (node: MergedNode, key: string): readonly number[] => {
  const value: MergedValue | undefined = node.params[key];
  if (Array.isArray(value) && value.every((item) => typeof item === "number")) return value as readonly number[];
  return rejectNode(node, `its ${key} depend on the batch size; export for a single size, such as batch: 1`);
};

/** Returns a parameter of a node, by key. */
export const param = <T extends MergedValue>(node: MergedNode, key: string): T => node.params[key] as T;

/**
 * Returns the size of dimension `dim` of a tensor, which must not depend on the batch size.
 * @throws OnnxError if the size depends on the batch size.
 */
export const knownSize = (node: MergedNode, { shape }: MergedSpec, dim: number): number => {
  const size = shape.at(dim)!;
  return isKnown(size)
    ? size
    : rejectNode(
        node,
        "it works along a dimension that depends on the batch size; export for a single size, such as batch: 1",
      );
};

/**
 * Emits `where(condition, a, b)`. Operands with dtypes that runtimes do not support are cast to another dtype, and the
 * result is cast back.
 */
export const chosen = (
  writer: ModelWriter,
  [condition, a, b]: readonly [string, string, string],
  dtype: DType,
): string => {
  const by = ({ bool: "u8", u32: "i64" } as const)[dtype as "bool"];
  if (by === undefined) return writer.node("Where", [condition, a, b]);
  const [first, second] = [a, b].map((name) => writer.node("Cast", [name], { to: typeCode(by) }));
  return writer.node("Cast", [writer.node("Where", [condition, first!, second!])], { to: typeCode(dtype) });
};
