import { bytesPerElement, type DType } from "@skein/tensor-core";
import { attentionSizes, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import type { Binding, BindingSource } from "../../kernel.ts";
import { loadVectors, sharesWords, storeVectors, vectorBindingType } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

/** Sizes and options of a node of either attention operator. */
export interface AttentionNode {
  readonly batch: number;
  /** Number of lines. A line is one query head of one batch entry. */
  readonly lines: number;
  /** Number of consecutive lines that share keys and values (grouped-query attention). */
  readonly group: number;
  /** Whether an operand contains the number of keys and the first query position of each batch entry. */
  readonly limited: boolean;
  readonly queries: number;
  readonly keys: number;
  readonly width: number;
  readonly causal: boolean;
  readonly scale: number;
  /** dtype of q, k, v, the result and the gradients. Sums are always f32. */
  readonly dtype: DType;
}

export const attentionNode = ({ op, inputs, params }: KernelNode<OperatorParams["attention"]>): AttentionNode => {
  const { batch, heads, group, queries, keys, width } = attentionSizes(inputs);
  return {
    batch,
    lines: heads,
    group,
    limited: inputs.length > (op === "attention" ? 3 : 6),
    queries,
    keys,
    width,
    causal: params.causal,
    scale: params.scale,
    dtype: inputs[0]!.dtype,
  };
};

/**
 * Returns the sizes that are passed as uniforms instead of shader text. A model whose number of keys grows token by
 * token then reuses its pipelines.
 */
export const uniformSizes = ({ queries, keys }: AttentionNode, tiles: number): { readonly [name: string]: number } => ({
  queries,
  keys,
  tiles,
});

/** Returns the binding of an operand, and WGSL that reads its rows as vectors. */
export const readRows = (
  name: string,
  { dtype, width }: AttentionNode,
  source: BindingSource,
): { binding: Binding; code: string } => ({
  binding: { name, type: vectorBindingType(dtype, width), source, access: "read" },
  code: loadVectors(name, dtype, width),
});

/**
 * Returns the binding of a result, and WGSL that writes its rows as vectors. If two rows of the result share a word,
 * f32 values are written to block `scratch`; see `narrowPass`.
 */
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

/**
 * Returns the sizes in bytes of the f32 scratch blocks for results whose adjacent rows share words: one block with
 * `rows[i]` rows per result. Empty if rows do not share words.
 */
export const indirectScratch = ({ dtype, width }: AttentionNode, rows: readonly number[]): number[] =>
  sharesWords(dtype, width) ? rows.map((count) => count * width * bytesPerElement.f32) : [];

/** Returns a binding of an array of f32. */
export const words = (name: string, source: BindingSource, access: "read" | "write"): Binding => ({
  name,
  type: "array<f32>",
  source,
  access,
});

/**
 * Returns WGSL that declares `key_line`, the index of the first row of k and v for the query head `line`. `line` counts
 * the query heads of all batch entries.
 */
export const keyLine = ({ group }: AttentionNode): string =>
  `let key_line = line${group === 1 ? "" : ` / ${group}u`} * sizes.keys;`;

/**
 * Returns WGSL of `fn seen_by(query: u32, keys: u32, start: i32) -> u32`, which returns the number of keys that a query
 * attends to. `keys` is the number of keys of the batch entry, and `start` the position of its first query.
 */
export const seenBy = ({ causal }: AttentionNode): string =>
  causal
    ? "fn seen_by(query: u32, keys: u32, start: i32) -> u32 { return u32(clamp(i32(query) + 1 + start, 0, i32(keys))); }"
    : "fn seen_by(query: u32, keys: u32, start: i32) -> u32 { return keys; }";

/**
 * WGSL and bindings that read the span of each batch entry in one pass. A span consists of the number of keys of the
 * batch entry, and the position of its first query.
 */
export interface SpanSource {
  /**
   * Bindings from which the spans are read. Empty if the node has no limits, because the spans are then equal for all
   * batch entries.
   */
  readonly bindings: readonly Binding[];
  /**
   * WGSL declarations outside of functions. If the node has limits, they define `fn span_of(entry: u32) -> vec2<u32>`.
   */
  readonly code: string;
  /**
   * Returns WGSL that declares `keys: u32` and `start: i32`, the span of the batch entry that `line` belongs to. If
   * `shared`, all invocations of a workgroup have the same line. The values are then passed through workgroup memory,
   * which makes them uniform.
   */
  readonly define: (line: string, shared: boolean) => string;
}

const sharedSpan = "var<workgroup> span: vec2<u32>;";

const spans = (node: AttentionNode, code: string, bindings: readonly Binding[]): SpanSource => {
  if (!node.limited)
    return {
      bindings: [],
      code: "",
      define: () => "let keys = sizes.keys;\nlet start = i32(sizes.keys) - i32(sizes.queries);",
    };
  const entry = (line: string): string => `span_of(${line} / ${node.lines / node.batch}u)`;
  return {
    bindings,
    code: `${sharedSpan}${code}`,
    define: (line, shared) => wgsl`
      ${
        shared
          ? wgsl`
            if (lane == 0u) { span = ${entry(line)}; }
            let own_span = workgroupUniformLoad(&span);
          `
          : `let own_span = ${entry(line)};`
      }
      let keys = own_span.x;
      let start = bitcast<i32>(own_span.y);
    `,
  };
};

/**
 * Returns WGSL that reads the spans from the limits of the batch entries, which are input `input`. A start is clamped
 * to −queries … keys, so that sums of positions do not overflow.
 */
export const spansOfLimits = (node: AttentionNode, input: number): SpanSource =>
  spans(
    node,
    wgsl`
      fn span_of(entry: u32) -> vec2<u32> {
        let start = clamp(limits[entry + ${node.batch}u], -i32(sizes.queries), i32(sizes.keys));
        return vec2<u32>(u32(clamp(limits[entry], 0, i32(sizes.keys))), bitcast<u32>(start));
      }
    `,
    [{ name: "limits", type: "array<i32>", source: { input }, access: "read" }],
  );

/**
 * Returns WGSL that reads the spans from the end of the δ buffer, to which `deltaPass` has written the spans. A
 * gradient pass cannot read the limits directly, because it has no free binding for them.
 */
export const spansBehindDeltas = (node: AttentionNode): SpanSource =>
  spans(
    node,
    wgsl`
      fn span_of(entry: u32) -> vec2<u32> {
        let at = ${node.lines * node.queries}u + 2u * entry;
        return vec2<u32>(delta[at], delta[at + 1u]);
      }
    `,
    [],
  );

/**
 * Returns the binding of δ and WGSL that reads δ. If the node has limits, the spans, which are integers, are stored
 * after δ, so the elements of the binding are u32.
 */
export const readDeltas = (
  { limited }: AttentionNode,
  scratch: number,
): { binding: Binding; at: (index: string) => string } => ({
  binding: { name: "delta", type: limited ? "array<u32>" : "array<f32>", source: { scratch }, access: "read" },
  at: (index) => (limited ? `bitcast<f32>(delta[${index}])` : `delta[${index}]`),
});
