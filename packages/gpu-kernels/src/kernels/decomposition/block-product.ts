import type { DeviceFacts } from "../../kernel.ts";
import { blockRows } from "./block.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of rows and columns in the result tile of one workgroup. */
export const tileSize = 64;

const depth = 16;
// Distance in vectors of four between consecutive sum indices in workgroup memory. Odd, so that lanes that load along
// the sum write to different banks.
const stride = tileSize / 4 + 1;

/**
 * Returns `parts`: each invocation computes 4·`parts` × 4·`parts` results. With `parts` = 1, 256 invocations keep a GPU
 * busy even if few tiles remain. With `parts` = 2, the reads per product are halved, which matters on software
 * adapters: 4096 × 4096 then takes half of the time.
 */
export const productParts = ({ software }: Pick<DeviceFacts, "software">): number => (software ? 2 : 1);

/** Returns the number of invocations per workgroup. */
export const productLanes = (parts: number): number => (tileSize / (4 * parts)) ** 2;

const loadTile = (name: string, along: "inner" | "outer"): string => {
  const [inner, outer] =
    along === "inner" ? [`e % ${depth}u`, `e / ${depth}u`] : [`e / ${tileSize / 4}u`, `e % ${tileSize / 4}u`];
  return wgsl`
    {
      let k = ${inner};
      let i = 4u * (${outer});
      tile_${name}[k * ${stride}u + i / 4u] = vec4<f32>(${[0, 1, 2, 3].map((t) => `load_${name}(first_${name} + i + ${t}u, inner + k)`).join(", ")});
    }
  `;
};

/**
 * Returns WGSL of `fn subtract_product(lane, first_a, first_b)`, which subtracts `Σ a(i, k) · b(j, k)`, over the 64 sum
 * indices of a block, from the 64 × 64 tile at row `first_a` and column `first_b`. The caller defines `load_a(i, k)`
 * and `load_b(j, k)`, which return zero outside of the matrix, and `subtract(i, j, x)`, which ignores entries outside
 * of the matrix.
 *
 * Each invocation has 4·`parts` × 4·`parts` results. Operands are loaded into workgroup memory, 16 sum indices at a
 * time (8.5 KiB).
 *
 * @param along Index along which each operand is contiguous in memory.
 */
export const blockProductCode = (
  parts: number,
  along: { readonly a: "inner" | "outer"; readonly b: "inner" | "outer" },
): string => {
  const lanes = productLanes(parts);
  const side = tileSize / (4 * parts);
  const range = Array.from({ length: parts }, (_, p) => p);
  const results = range.flatMap((p) =>
    [0, 1, 2, 3].flatMap((t) => range.map((q) => ({ p, t, q, name: `s${p}_${t}_${q}` }))),
  );
  return wgsl`
    var<workgroup> tile_a: array<vec4<f32>, ${depth * stride}>;
    var<workgroup> tile_b: array<vec4<f32>, ${depth * stride}>;
    fn subtract_product(lane: u32, first_a: u32, first_b: u32) {
      let row = lane / ${side}u;
      let column = lane % ${side}u;
      ${results.map(({ name }) => `var ${name} = vec4<f32>();`)}
      for (var inner = 0u; inner < ${blockRows}u; inner += ${depth}u) {
        workgroupBarrier();
        for (var e = lane; e < ${(depth * tileSize) / 4}u; e += ${lanes}u) {
          ${loadTile("a", along.a)}
          ${loadTile("b", along.b)}
        }
        workgroupBarrier();
        for (var k = 0u; k < ${depth}u; k++) {
          ${range.map(
            (p) => wgsl`
              let a${p} = tile_a[k * ${stride}u + row + ${p * side}u];
              let b${p} = tile_b[k * ${stride}u + column + ${p * side}u];
            `,
          )}
          ${results.map(({ p, t, q, name }) => `${name} = fma(vec4<f32>(a${p}[${t}]), b${q}, ${name});`)}
        }
      }
      for (var j = 0u; j < 4u; j++) {
        ${results.map(({ p, t, q, name }) => `subtract(first_a + 4u * (row + ${p * side}u) + ${t}u, first_b + 4u * (column + ${q * side}u) + j, ${name}[j]);`)}
      }
    }
  `;
};
