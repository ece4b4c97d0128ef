import { bytesPerElement, type DType, type KernelNode, type OperatorParams } from "@skein/tensor-core";
import type { Binding, BindingSource } from "../../kernel.ts";
import { loadVectors, sharesWords, storeVectors, vectorBindingType } from "./vectors.ts";

/** What both attention operators say of a node. */
export interface AttentionNode {
  /** Batch entries × heads; each has its own queries and keys. */
  readonly lines: number;
  readonly queries: number;
  readonly keys: number;
  readonly width: number;
  readonly causal: boolean;
  readonly scale: number;
  /** Of q, k, v, the result and the gradients; sums are f32. */
  readonly dtype: DType;
}

export const attentionNode = ({ inputs, params }: KernelNode<OperatorParams["attention"]>): AttentionNode => {
  const [batch, heads, queries, width] = inputs[0]!.shape as [number, number, number, number];
  return {
    lines: batch * heads,
    queries,
    keys: inputs[1]!.shape[2]!,
    width,
    causal: params.causal,
    scale: params.scale,
    dtype: inputs[0]!.dtype,
  };
};

/** The sizes that are not part of the text: a model that grows its keys token by token keeps its pipelines. */
export const attentionSizes = ({ queries, keys }: AttentionNode, tiles: number): { readonly [name: string]: number } => ({
  queries,
  keys,
  tiles,
});

/** Binding and WGSL of an operand that is read by vectors. */
export const readRows = (name: string, { dtype, width }: AttentionNode, source: BindingSource): { binding: Binding; code: string } => ({
  binding: { name, type: vectorBindingType(dtype, width), source, access: "read" },
  code: loadVectors(name, dtype, width),
});

/** Binding and WGSL of a result that is written by vectors; where its rows share words, it goes to `scratch` as f32, see `narrowPass`. */
export const writeRows = (
  name: string,
  { dtype, width }: AttentionNode,
  source: BindingSource,
  scratch: number,
): { binding: Binding; code: string } => {
  const indirect = sharesWords(dtype, width);
  const held = indirect ? "f32" : dtype;
  return {
    binding: { name, type: vectorBindingType(held, width), source: indirect ? { scratch } : source, access: "write" },
    code: storeVectors(name, held, width),
  };
};

/** Bytes of the scratch blocks that results of these lengths need, in order; none unless their rows share words. */
export const indirectScratch = ({ dtype, width }: AttentionNode, rows: readonly number[]): number[] =>
  sharesWords(dtype, width) ? rows.map((count) => count * width * bytesPerElement.f32) : [];

/** A binding of f32 words. */
export const words = (name: string, source: BindingSource, access: "read" | "write"): Binding => ({
  name,
  type: "array<f32>",
  source,
  access,
});

/** `fn seen_by(query: u32) -> u32`: keys that a query sees. */
export const seenBy = (causal: boolean): string =>
  causal
    ? "fn seen_by(query: u32) -> u32 { return u32(clamp(i32(query) + 1 + i32(sizes.keys) - i32(sizes.queries), 0, i32(sizes.keys))); }\n"
    : "fn seen_by(query: u32) -> u32 { return sizes.keys; }\n";
