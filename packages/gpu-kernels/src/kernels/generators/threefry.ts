import type { Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

// Threefry2x32-20, several counters at once. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11,
// §4.

const rotations = [13, 15, 26, 6, 17, 29, 16, 24];
const parity = "0x1bd11bdau";

/**
 * Returns WGSL of `fn threefry(key: vec2<u32>, low, high) -> array<T, 2>`, which returns both words for each counter
 * `(low, high)`. T is `u32` or a vector of `u32`.
 */
const threefryFunction = (type: "u32" | "vec4<u32>"): string => {
  const splat = (x: string | number): string => (type === "u32" ? `${x}` : `vec4<u32>(${x})`);
  const keys = ["key.x", "key.y", "last"];
  const rounds = Array.from({ length: 20 }, (_, round) => {
    const by = rotations[round % 8]!;
    const mix = `x += y; y = ((y << ${splat(`${by}u`)}) | (y >> ${splat(`${32 - by}u`)})) ^ x;`;
    if (round % 4 !== 3) return mix;
    const injection = (round + 1) / 4;
    return wgsl`
      ${mix}
      x += ${splat(keys[injection % 3]!)}; y += ${splat(`${keys[(injection + 1) % 3]!} + ${injection}u`)};
    `;
  });
  return wgsl`
    fn threefry(key: vec2<u32>, low: ${type}, high: ${type}) -> array<${type}, 2> {
      let last = ${parity} ^ key.x ^ key.y;
      var x = low + ${splat("key.x")};
      var y = high + ${splat("key.y")};
      ${rounds}
      return array<${type}, 2>(x, y);
    }
  `;
};

const workgroupSize = 64;

/**
 * Computes `count` random words: word i is word `i mod 2` at counter `(⌊i/2⌋, 0)`. An invocation encrypts four
 * counters, whose rounds overlap, and writes two vectors, next to the vectors of adjacent invocations.
 */
export const randomBitsPass = (count: number): Pass => {
  const vectors = Math.ceil(count / 4);
  return {
    label: "random-bits",
    bindings: [
      { name: "key", type: "array<u32>", source: { input: 0 }, access: "read" },
      { name: "y", type: "array<vec4<u32>>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(vectors / (2 * workgroupSize)),
    code: wgsl`
      ${threefryFunction("vec4<u32>")}
      fn main(group: u32, lane: u32) {
        let first = group * ${2 * workgroupSize}u + lane;
        let second = first + ${workgroupSize}u;
        let words = threefry(vec2<u32>(key[0], key[1]), vec4<u32>(2u * first, 2u * first + 1u, 2u * second, 2u * second + 1u), vec4<u32>());
        let x = words[0];
        let z = words[1];
        if (first < sizes.vectors) { y[first] = vec4<u32>(x.x, z.x, x.y, z.y); }
        if (second < sizes.vectors) { y[second] = vec4<u32>(x.z, z.z, x.w, z.w); }
      }
    `,
    sizes: { vectors },
  };
};

/** Computes a derived key: encrypts counter `(data, 1)` with the key. */
export const foldInPass: Pass = {
  label: "fold-in",
  bindings: [
    { name: "key", type: "array<u32>", source: { input: 0 }, access: "read" },
    { name: "data", type: "array<u32>", source: { input: 1 }, access: "read" },
    { name: "y", type: "array<u32>", source: { output: 0 }, access: "write" },
  ],
  workgroupSize: 1,
  groups: 1,
  code: wgsl`
    ${threefryFunction("u32")}
    fn main(group: u32, lane: u32) {
      let words = threefry(vec2<u32>(key[0], key[1]), data[0], 1u);
      y[0] = words[0];
      y[1] = words[1];
    }
  `,
};
