import { ArgumentError } from "../../errors.ts";
import {
  type Graph,
  type GraphBuilder,
  type Origin,
  originOf,
  specOf,
  type ValueRef,
  valueKey,
} from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { roleOf } from "../../ops/role.ts";
import { formatSpec, sameSpec, type TensorSpec } from "../../shape.ts";
import { optimize } from "../optimize.ts";
import { addCotangentBarrier, rewriteBackwardReads } from "../recompute/cotangent-barrier.ts";
import { withoutRegions } from "../recompute/recompute-regions.ts";
import { isLiteral } from "../recompute/recompute-values.ts";

/** Encoding of values that are saved for the backward pass. `encode` and `decode` are traced functions. */
export interface SavedCode {
  /** Encodes a value. The result is saved instead of the value. */
  readonly encode: (x: Tensor) => readonly Tensor[];
  /** Decodes a saved result of `encode` to the original dtype and shape, `spec`. */
  readonly decode: (codes: readonly Tensor[], spec: TensorSpec) => Tensor;
  /** Returns whether to encode a value. Default: all f32 values. */
  readonly selects?: (spec: TensorSpec, origin: Origin) => boolean;
}

/** Appends the nodes of graph `part`, with `operands` as the inputs of `part`. Returns the outputs of `part`. */
const splice = (builder: GraphBuilder, part: Graph, operands: readonly ValueRef[], origin: Origin): ValueRef[] => {
  const moved = new Map<string, ValueRef>();
  part.inputs.forEach((node, i) => moved.set(valueKey({ node, output: 0 }), operands[i]!));
  const resolve = (ref: ValueRef): ValueRef => moved.get(valueKey(ref))!;
  for (const node of part.nodes) {
    if (roleOf(node) === "argument") continue;
    const id = builder.add({ ...node, inputs: node.inputs.map(resolve), ...origin });
    node.specs.forEach((_, output) => moved.set(valueKey({ node: node.id, output }), { node: id, output }));
  }
  return part.outputs.map(resolve);
};

/**
 * Creates a pass that saves forward values for the backward pass in encoded form, such as 16-bit floats or blocks of
 * 8-bit numbers. A value is encoded where it is computed and decoded before its first reader in the backward pass; the
 * forward pass reads the original value.
 *
 * Arguments, constants, integers and results of the step are not encoded. Before each decoding, a barrier waits for a
 * cotangent, so that no pass moves the decoding into the forward pass. Gradients change by the rounding error of the
 * code. `checkpoint` regions are expanded before encoding. Therefore, values inside a region are not saved, and values
 * that the recomputation reads are encoded.
 *
 * @param code Encoding whose `decode` restores the original values, up to rounding.
 * @returns A pass for `jit`, to be applied after `mixedPrecision`.
 * @throws ArgumentError if `decode` returns another dtype or shape.
 * Cost: one encoding and one decoding per saved value.
 * @example
 * ```ts
 * const code = { encode: (x: Tensor) => [cast(x, "bf16")], decode: ([x]: readonly Tensor[]) => cast(x!, "f32") };
 * const gradient = (x: Tensor) => valueAndGrad((y: Tensor) => sum(tanh(y)))(x)[1];
 * const compiled = evaluate(gradient, referenceBackend(), { passes: [rewriteSaved(code as never)] });
 * console.log((await compiled(NdArray.from([0]))).toNumbers()); // [1]
 * ```
 */
export const rewriteSaved =
  ({ encode, decode, selects = () => true }: SavedCode): ((graph: Graph) => Graph) =>
  (source) => {
    const graph = withoutRegions(optimize(source, { fuse: false, schedule: false }));
    const returned = new Set(graph.outputs.map(valueKey));
    const isSaved = (ref: ValueRef): boolean => {
      const node = graph.nodes[ref.node]!;
      if (node.phase !== "forward" || roleOf(node) === "argument" || isLiteral(node) || returned.has(valueKey(ref)))
        return false;
      return specOf(graph, ref).dtype === "f32" && selects(specOf(graph, ref), originOf(node));
    };
    const saved = new Map<string, ValueRef>();
    for (const node of graph.nodes)
      if (node.phase === "backward") for (const ref of node.inputs) if (isSaved(ref)) saved.set(valueKey(ref), ref);

    return rewriteBackwardReads(graph, (builder) => {
      const codes = new Map<string, { readonly values: readonly ValueRef[]; readonly specs: readonly TensorSpec[] }>();
      const decoded = new Map<string, ValueRef>();
      const decodeValue = (ref: ValueRef, origin: Origin, lastCotangent: ValueRef | undefined): ValueRef => {
        const key = valueKey(ref);
        const known = decoded.get(key);
        if (known !== undefined) return known;
        const { values, specs } = codes.get(key)!;
        const spec = specOf(graph, ref);
        const barrier = addCotangentBarrier(builder, values, lastCotangent, origin);
        const part = trace((...own: Tensor[]) => decode(own, spec), specs as never).graph;
        const result = specOf(part, part.outputs[0]!);
        if (!sameSpec(result, spec))
          throw new ArgumentError(
            `rewriteSaved: a saved ${formatSpec(spec)} was decoded to ${formatSpec(result)}; decode() must return the dtype and shape of the argument of encode()`,
          );
        const [value] = splice(
          builder,
          part,
          values.map((_, output) => ({ node: barrier, output })),
          origin,
        );
        decoded.set(key, value!);
        return value!;
      };
      return {
        onCopy: (node) =>
          node.specs.forEach((spec, output) => {
            const ref = { node: node.id, output };
            if (!saved.has(valueKey(ref))) return;
            const part = trace((x: Tensor) => encode(x), [spec] as never).graph;
            const values = splice(builder, part, [builder.resolve(ref)], originOf(node));
            codes.set(valueKey(ref), { values, specs: part.outputs.map((out) => specOf(part, out)) });
          }),
        readsOf: (node, lastCotangent) =>
          node.inputs.map((ref) =>
            saved.has(valueKey(ref)) ? decodeValue(ref, originOf(node), lastCotangent) : builder.resolve(ref),
          ),
      };
    });
  };
