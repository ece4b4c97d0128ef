import type { DType } from "@skein/tensor-core";
import { wgsl } from "../../wgsl.ts";

// Rows of `width` f32 or f16 values, read and written in vectors of four for any width.

/** Returns the number of 4-element vectors that cover a row. A row without entries has one vector, of zeros. */
export const vectorsOf = (width: number): number => Math.max(1, Math.ceil(width / 4));

const whole = (width: number): boolean => width > 0 && width % 4 === 0;

/**
 * Whether rows of a result do not start at word boundaries. Such a result cannot be written row by row; see
 * `narrowPass`.
 */
export const sharesWords = (dtype: DType, width: number): boolean => dtype === "f16" && width % 2 === 1;

/** Returns the WGSL type of the binding that `loadVectors` reads. */
export const vectorBindingType = (dtype: DType, width: number): string => {
  if (dtype === "f16") return whole(width) ? "array<vec2<u32>>" : "array<u32>";
  return whole(width) ? "array<vec4<f32>>" : "array<f32>";
};

/**
 * Returns WGSL of `fn vector_<name>(row: u32, part: u32) -> vec4<f32>`, which returns row entries 4·part … 4·part+3,
 * with zeros after the end of the row.
 */
export const loadVectors = (name: string, dtype: DType, width: number): string => {
  const vectors = vectorsOf(width);
  const signature = `fn vector_${name}(row: u32, part: u32) -> vec4<f32>`;
  if (whole(width)) {
    if (dtype === "f32") return `${signature} { return ${name}[row * ${vectors}u + part]; }`;
    return `${signature} { let w = ${name}[row * ${vectors}u + part]; return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)); }`;
  }
  // Entries after the end of the row are read and discarded. A branch per entry would be slower.
  const inside = `vec4<u32>(4u * part) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(${width}u)`;
  if (dtype === "f32")
    return wgsl`
      ${signature} {
        let at = row * ${width}u + 4u * part;
        return select(vec4<f32>(), vec4<f32>(${name}[at], ${name}[at + 1u], ${name}[at + 2u], ${name}[at + 3u]), ${inside});
      }
    `;
  const halves =
    width % 2 === 0
      ? "let pair = vec2<u32>(w0, w1);"
      : wgsl`
        let w2 = ${name}[(at >> 1u) + 2u];
        let pair = select(vec2<u32>(w0, w1), vec2<u32>((w0 >> 16u) | (w1 << 16u), (w1 >> 16u) | (w2 << 16u)), (at & 1u) == 1u);
      `;
  return wgsl`
    ${signature} {
      let at = row * ${width}u + 4u * part;
      let w0 = ${name}[at >> 1u];
      let w1 = ${name}[(at >> 1u) + 1u];
      ${halves}
      return select(vec4<f32>(), vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y)), ${inside});
    }
  `;
};

/**
 * Returns WGSL of `fn put_<name>(row: u32, part: u32, x: vec4<f32>)`, which writes row entries 4·part … 4·part+3 and
 * omits entries after the end of the row.
 */
export const storeVectors = (name: string, dtype: DType, width: number): string => {
  const vectors = vectorsOf(width);
  const signature = `fn put_${name}(row: u32, part: u32, x: vec4<f32>)`;
  if (dtype === "f16") {
    const second =
      width % 4 === 2
        ? `if (4u * part + 2u < ${width}u) { ${name}[at + 1u] = pack2x16float(x.zw); }`
        : `${name}[at + 1u] = pack2x16float(x.zw);`;
    if (whole(width))
      return `${signature} { ${name}[row * ${vectors}u + part] = vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw)); }`;
    return `${signature} { let at = row * ${width / 2}u + 2u * part; ${name}[at] = pack2x16float(x.xy); ${second} }`;
  }
  if (whole(width)) return `${signature} { ${name}[row * ${vectors}u + part] = x; }`;
  const entries = [0, 1, 2, 3].map((t) => `if (4u * part + ${t}u < ${width}u) { ${name}[at + ${t}u] = x[${t}]; }`);
  return wgsl`
    ${signature} {
      let at = row * ${width}u + 4u * part;
      ${entries}
    }
  `;
};

/**
 * Formats an f32 as WGSL. Infinities and NaN, which have no decimal form, are computed from the variable `never`, which
 * is 0.
 */
export const floatText = (value: number): string => {
  const rounded = Math.fround(value);
  if (Number.isFinite(rounded)) return `${rounded}f`;
  return `bitcast<f32>(${Number.isNaN(rounded) ? "0x7fc00000u" : rounded > 0 ? "0x7f800000u" : "0xff800000u"} | never)`;
};
