import type { DeviceFacts, Pass } from "../../kernel.ts";
import { matrixSizes, operandOf, sinkOf } from "./operands.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;
const rows = 8;

/**
 * Computes a product that shares rows of `a` within subgroups: all invocations of a workgroup share 8 rows, each lane
 * loads a different element of these rows, and broadcasts distribute the elements. Therefore `a` is read once per
 * workgroup, without workgroup memory or barriers. Fast if a broadcast is free (Intel GPUs read any lane's register);
 * on other devices a broadcast costs as much as workgroup memory.
 *
 * Lanes of a larger subgroup repeat the first lanes, so the code runs with any subgroup size that the adapter may
 * choose.
 */
export const subgroupPass = (product: Product, { minSubgroupSize }: DeviceFacts): Pass => {
  const { batch, inner, transposeA, dtype } = product;
  const chunk = Math.min(minSubgroupSize, 32);
  const [b, y] = [operandOf(product, "b"), sinkOf(product, false)];
  const [groupsM, groupsN] = [Math.ceil(product.rows / rows), Math.ceil(product.columns / (4 * lanes))];
  const all = range(rows);
  const loadA = (guarded: boolean): string[] =>
    all.map((i) => {
      const at = transposeA ? `own_k * sizes.rows + row_${i}` : `row_${i} * sizes.inner + own_k`;
      const value = `f32(a[base_a + ${at}])`;
      return `let own_${i} = ${guarded ? `select(0.0, ${value}, own_k < sizes.inner)` : value};`;
    });
  const addFour = (at: number, tail: boolean): string => wgsl`
    {
      let b = ${tail ? `fetch_b_tail(base_b, n0, k + ${at}u, sizes.inner)` : `fetch_b(base_b, n0, k + ${at}u)`};
      ${range(4).flatMap((j) =>
        all.map((i) => `sum_${i} = fma(vec4<f32>(subgroupBroadcast(own_${i}, ${at + j}u)), b[${j}], sum_${i});`),
      )}
    }
  `;
  const addChunk = (tail: boolean): string[] => range(chunk / 4).map((q) => addFour(4 * q, tail));
  return {
    label: `matmul ${layoutOf(product)} subgroup of ${chunk}`,
    bindings: [{ name: "a", type: `array<${dtype}>`, source: { input: 0 }, access: "read" }, b.binding, y.binding],
    workgroupSize: lanes,
    groups: batch * groupsM * groupsN,
    sizes: { ...matrixSizes(product), groups_m: groupsM, groups_n: groupsN },
    features: [...(featuresOf(product).features ?? []), "subgroups"],
    code: wgsl`
      ${b.code}
      ${y.code}
      fn main(group: u32, lane: u32, subgroup_lane: u32, subgroup_size: u32) {
        let layer = group / (sizes.groups_m * sizes.groups_n);
        let in_layer = group - layer * sizes.groups_m * sizes.groups_n;
        let m0 = in_layer % sizes.groups_m * ${rows}u;
        let n0 = (in_layer / sizes.groups_m * ${lanes}u + lane) * 4u;
        let base_a = layer * sizes.rows * sizes.inner;
        let base_b = layer * sizes.inner * sizes.columns;
        ${all.map(
          (i) => wgsl`
            let row_${i} = min(m0 + ${i}u, sizes.rows - 1u);
            var sum_${i} = vec4<f32>();
          `,
        )}
        var k = 0u;
        for (; k + ${chunk}u <= sizes.inner; k += ${chunk}u) {
          let own_k = k + subgroup_lane % ${chunk}u;
          ${loadA(false)}
          ${addChunk(false)}
        }
        ${
          inner % chunk === 0
            ? ""
            : wgsl`
              if (k < sizes.inner) {
                let own_k = k + subgroup_lane % ${chunk}u;
                ${loadA(true)}
                ${addChunk(true)}
              }
            `
        }
        ${all.map((i) => `if (m0 + ${i}u < sizes.rows) { store_y((layer * sizes.rows + m0 + ${i}u) * sizes.columns, n0, sum_${i}); }`)}
      }
    `,
  };
};

export const subgroup: MatmulVariant = {
  name: "subgroup-8x4",
  sums: "in order",
  supports: ({ inner }, { subgroups, minSubgroupSize }) => inner > 0 && subgroups && minSubgroupSize >= 4,
  plan: (product, facts) => ({ passes: [subgroupPass(product, facts)] }),
};
