import type { DType } from "@skein/tensor-core";
import { isKnown } from "../affine.ts";
import { OnnxError } from "../errors.ts";
import type { MergedNode, MergedSpec, MergedValue } from "../merge-traces.ts";
import type { ConstantType, ModelWriter } from "../model-writer.ts";
import { typeCode } from "../proto.ts";

/** What an operator is written by. */
export interface EmitInput {
  readonly node: MergedNode;
  /** Names of its operands, and what they are. */
  readonly inputs: readonly string[];
  readonly specs: readonly MergedSpec[];
  readonly writer: ModelWriter;
}

/** Writes a node of an operator. @returns the names of its results; of those left out there is none in ONNX. */
export type Emitter = (input: EmitInput) => string | readonly (string | undefined)[];

/** Emitters by the name of the operator. */
export type EmitterTable = ReadonlyMap<string, Emitter>;

/** Of what a node says no ONNX can be made. */
export const refuseNode = ({ op, id, scope }: MergedNode, why: string): never => {
  throw new OnnxError(`${op} #${id}${scope === "" ? "" : ` of ${scope}`} has no form in ONNX: ${why}`);
};

/** @throws OnnxError where runtimes do not compute with what an operand is. */
export const needTypes = (node: MergedNode, specs: readonly MergedSpec[], known: readonly DType[]): void => {
  const other = specs.find(({ dtype }) => !known.includes(dtype));
  if (other !== undefined)
    refuseNode(node, `runtimes compute it of ${known.join(" and ")}, not of ${other.dtype}; cast its operands`);
};

const constantTypes: readonly DType[] = ["f32", "i32", "u32", "u8", "bool"] satisfies readonly ConstantType[];

/** @throws OnnxError for what no constant is written of. */
export const needConstant = (node: MergedNode, dtype: DType): ConstantType =>
  constantTypes.includes(dtype)
    ? (dtype as ConstantType)
    : refuseNode(node, `a constant of ${dtype} is not written; make f32 and cast it`);

/** A list of numbers that do not follow from the batch. */
export const knownNumbers = (node: MergedNode, key: string): readonly number[] => {
  const value: MergedValue | undefined = node.params[key];
  if (Array.isArray(value) && value.every((item) => typeof item === "number")) return value as readonly number[];
  return refuseNode(node, `its ${key} follow from the size of the batch; export for one size, such as batch: 1`);
};

/** A parameter as it is. */
export const param = <T extends MergedValue>(node: MergedNode, key: string): T => node.params[key] as T;

/** A size that does not follow from the batch. */
export const knownSize = (node: MergedNode, { shape }: MergedSpec, dim: number): number => {
  const size = shape.at(dim)!;
  return isKnown(size)
    ? size
    : refuseNode(node, "it works along a dimension that follows from the batch; export for one size, such as batch: 1");
};

/** `where(condition, a, b)`; of types that runtimes do not choose among by way of one that they do. */
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
