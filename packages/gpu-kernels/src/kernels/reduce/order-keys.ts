import type { DType } from "@skein/tensor-core";
import type { Lanes } from "./fold.ts";
import { wgsl } from "../../wgsl.ts";

// Keys are u32 with the same order as the values, so that comparisons are exact even if a shader compiler assumes that
// floats are finite. NaN has the largest key, and -0 equals +0. `flip` reverses the order of all keys except NaN.

/**
 * Order of elements that their keys represent: f32 by value or by magnitude, signed or unsigned integers, bytes, or
 * bools.
 */
export type KeyKind = "value" | "magnitude" | "signed" | "unsigned" | "byte" | "bool";

export const keyKindOf: { readonly [dtype in DType]?: KeyKind } = {
  f32: "value",
  i32: "signed",
  u32: "unsigned",
  u8: "byte",
  bool: "bool",
};

const flips: { readonly [kind in KeyKind]: string } = {
  value: "0xffffffffu",
  magnitude: "0xffffffffu",
  signed: "0xffffffffu",
  unsigned: "0xffffffffu",
  byte: "0xffu",
  bool: "1u",
};

/**
 * Returns WGSL of the smallest key, the result of empty folds: the key of −∞ for f32 values, and of the smallest
 * integer.
 */
export const minKey = (kind: KeyKind): string => (kind === "value" ? "0x007fffffu" : "0u");

const wide = (lanes: Lanes, value: string): string => (lanes === 1 ? value : `vec4<u32>(${value})`);

/** Returns WGSL of `fn key_of(bits) -> key` on u32 or on vectors of four u32. */
export const keyFunction = (kind: KeyKind, flip: boolean, lanes: Lanes): string => {
  const type = lanes === 1 ? "u32" : "vec4<u32>";
  const mask = flip ? ` ^ ${wide(lanes, flips[kind])}` : "";
  const [ones, infinity] = [wide(lanes, "0xffffffffu"), wide(lanes, "0x7f800000u")];
  const bodies: { readonly [kind in KeyKind]: string } = {
    value: wgsl`
      let magnitude = bits & ${wide(lanes, "0x7fffffffu")};
      let key = select(~bits, magnitude | ${wide(lanes, "0x80000000u")}, (bits == magnitude) | (magnitude == ${wide(lanes, "0u")}))${mask};
      return select(key, ${ones}, magnitude > ${infinity});
    `,
    magnitude: wgsl`
      let magnitude = bits & ${wide(lanes, "0x7fffffffu")};
      return select(magnitude${mask}, ${ones}, magnitude > ${infinity});
    `,
    signed: `return (bits ^ ${wide(lanes, "0x80000000u")})${mask};`,
    unsigned: `return bits${mask};`,
    byte: `return bits${mask};`,
    bool: `return bits${mask};`,
  };
  return wgsl`
    fn key_of(bits: ${type}) -> ${type} {
      ${bodies[kind]}
    }
  `;
};

/**
 * Returns WGSL of `fn bits_of(key: u32) -> u32`, the inverse of `key_of`. NaN becomes the quiet NaN, and -0 becomes 0.
 */
export const unkeyFunction = (kind: Exclude<KeyKind, "magnitude">, flip: boolean): string => {
  const mask = flip ? ` ^ ${flips[kind]}` : "";
  const bodies: { readonly [kind in Exclude<KeyKind, "magnitude">]: string } = {
    value: wgsl`
      if (key == 0xffffffffu) { return 0x7fc00000u; }
      let k = key${mask};
      return select(~k, k & 0x7fffffffu, (k & 0x80000000u) != 0u);
    `,
    signed: `return (key${mask}) ^ 0x80000000u;`,
    unsigned: `return key${mask};`,
    byte: `return key${mask};`,
    bool: `return key${mask};`,
  };
  return wgsl`
    fn bits_of(key: u32) -> u32 {
      ${bodies[kind]}
    }
  `;
};
