import { InvariantError } from "@skein/tensor-core";
import type { Binding } from "./kernel.ts";
import type { ShaderVariable } from "./shader.ts";

/** A range of one buffer. `region`: index among the buffers of an executable. */
export interface BufferRange {
  readonly region: number;
  readonly offset: number;
  /** A multiple of 16. */
  readonly bytes: number;
}

export interface PlacedBinding {
  readonly binding: Binding;
  readonly at: BufferRange;
}

export interface PlacedVariable extends ShaderVariable {
  readonly at: BufferRange;
}

/** Variables and copies that replace a pass's bindings for WebGPU. */
export interface ResolvedBindings {
  readonly variables: readonly PlacedVariable[];
  readonly renamed: ReadonlyMap<string, string>;
  /** Copies to make before the pass. Targets are offsets in the region `copyRegion`. */
  readonly copies: readonly { readonly from: BufferRange; readonly toOffset: number }[];
}

const sameRange = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset === b.offset && a.bytes === b.bytes;

const overlap = (a: BufferRange, b: BufferRange): boolean =>
  a.region === b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;

/**
 * WebGPU rejects a dispatch that binds one buffer both read-only and writable, or that binds two overlapping writable
 * ranges. So all bindings of a buffer that a pass writes are declared writable, bindings of the same range become one
 * variable, and an operand that partly overlaps another is read from a copy.
 *
 * @param copyRegion region for these copies.
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
  // Writers first: a reader can be moved to a copy, a writer cannot.
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
