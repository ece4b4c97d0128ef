import { InvariantError } from "@skein/tensor-core";
import type { Binding } from "./kernel.ts";
import type { ShaderVariable } from "./shader.ts";

/** A range of one buffer. `region` is the index of the buffer's memory region in the executable. */
export interface BufferRange {
  readonly region: number;
  readonly offset: number;
  /** Length of the range in bytes, a multiple of 16. */
  readonly bytes: number;
}

export interface PlacedBinding {
  readonly binding: Binding;
  readonly at: BufferRange;
}

export interface PlacedVariable extends ShaderVariable {
  readonly at: BufferRange;
}

/**
 * Result of `resolveBindings`: the variables that replace the bindings of a pass, and the copies to make before the
 * pass.
 */
export interface ResolvedBindings {
  readonly variables: readonly PlacedVariable[];
  readonly renamed: ReadonlyMap<string, string>;
  /** Copies to make before the pass. Destinations are byte offsets in the region `copyRegion`. */
  readonly copies: readonly { readonly from: BufferRange; readonly toOffset: number }[];
}

const sameRange = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset === b.offset && a.bytes === b.bytes;

const overlap = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;

/**
 * Resolves overlapping bindings of a pass. WebGPU rejects a dispatch that binds one buffer both read-only and writable,
 * or that binds two overlapping writable ranges. Therefore all bindings of a written buffer are declared writable, and
 * bindings of the same range become one variable. An operand that partly overlaps another range is read from a copy.
 *
 * @param copyRegion Index of the region for the copies.
 */
export const resolveBindings = (
  bindings: readonly PlacedBinding[],
  copyRegion: number,
  alignment: number,
): ResolvedBindings => {
  const written = new Set(bindings.filter(({ binding }) => binding.access === "write").map(({ at }) => at.region));
  const variables: PlacedVariable[] = [];
  const renamed = new Map<string, string>();
  const copies: { from: BufferRange; toOffset: number }[] = [];
  let copied = 0;
  // Bindings that are written come first: an operand that is only read can be copied, a written operand cannot.
  const ordered = [...bindings].sort(
    (a, b) => Number(a.binding.access === "read") - Number(b.binding.access === "read"),
  );
  for (const { binding, at } of ordered) {
    const { name, type, access } = binding;
    const same = variables.find((variable) => sameRange(variable.at, at) && variable.type === type);
    if (same !== undefined) {
      renamed.set(name, same.name);
    } else if (!written.has(at.region) || !variables.some((variable) => overlap(variable.at, at))) {
      variables.push({ name, type, writable: written.has(at.region), at });
    } else if (access === "read") {
      copies.push({ from: at, toOffset: copied });
      variables.push({ name, type, writable: false, at: { region: copyRegion, offset: copied, bytes: at.bytes } });
      copied += Math.ceil(at.bytes / alignment) * alignment;
    } else {
      throw new InvariantError(`binding ${name} is written and overlaps another written binding`);
    }
  }
  return { variables, renamed, copies };
};
