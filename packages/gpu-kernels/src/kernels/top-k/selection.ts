import type { Binding, BindingSource } from "../../kernel.ts";
import type { KeyKind } from "../reduce/order-keys.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Selection of the `k` largest elements in each row of [rows, size]. NaN is largest, and among equal keys, lower
 * positions come first.
 */
export interface Selection {
  readonly rows: number;
  readonly size: number;
  readonly k: number;
  readonly by: KeyKind;
}

/**
 * Memory blocks that hold winners, the selected elements, between passes: their keys, and their positions in their
 * rows, both [rows, k].
 */
export interface Winners {
  readonly keys: BindingSource;
  readonly positions: BindingSource;
}

/** Returns the binding of the elements as bits, so that elements are returned unchanged. */
export const elementsBinding = (vector = false): Binding => ({
  name: "x",
  type: vector ? "array<vec4<u32>>" : "array<u32>",
  source: { input: 0 },
  access: "read",
});

const words = (name: string, source: BindingSource, access: "read" | "write"): Binding => ({
  name,
  type: "array<u32>",
  source,
  access,
});

/**
 * Returns WGSL of `fn win(at: u32, bits: u32, key: u32, place: u32)`, which writes a winner at index `at` = `row · k +
 * rank`, to the results or to the input of the sort.
 */
export const winText = (to: Winners | undefined): { readonly bindings: readonly Binding[]; readonly code: string } =>
  to === undefined
    ? {
        bindings: [words("values", { output: 0 }, "write"), words("indices", { output: 1 }, "write")],
        code: "fn win(at: u32, bits: u32, key: u32, place: u32) { values[at] = bits; indices[at] = place; }",
      }
    : {
        bindings: [words("to_keys", to.keys, "write"), words("to_places", to.positions, "write")],
        code: "fn win(at: u32, bits: u32, key: u32, place: u32) { to_keys[at] = key; to_places[at] = place; }",
      };

/** Returns the bindings from which later passes read the winners. */
export const winnerBindings = ({ keys, positions }: Winners): readonly Binding[] => [
  words("from_keys", keys, "read"),
  words("from_places", positions, "read"),
];

/**
 * WGSL of `fn before(key_a, place_a, key_b, place_b) -> bool`, which returns whether element a ranks before element b.
 * Larger keys come first; equal keys are ordered by position.
 */
export const beforeText: string = wgsl`
  fn before(key_a: u32, place_a: u32, key_b: u32, place_b: u32) -> bool {
    return key_a > key_b || (key_a == key_b && place_a < place_b);
  }
`;
