import type { KernelPlan } from "../../kernel.ts";
import { pivotFunction } from "./block.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/** The definition: one invocation per matrix, row by row. What the blocked factorisation is tested against. */
export const choleskyNaive = (batch: number, size: number): KernelPlan => ({
  passes: [
    {
      label: "cholesky naive",
      bindings: [
        { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
        { name: "l", type: "array<f32>", source: { output: 0 }, access: "write" },
      ],
      workgroupSize: lanes,
      groups: Math.ceil(batch / lanes),
      sizes: { n: size, batch },
      code: wgsl`
        ${pivotFunction}
        fn main(group: u32, lane: u32) {
          let matrix = group * ${lanes}u + lane;
          if (matrix >= sizes.batch) { return; }
          let corner = matrix * sizes.n * sizes.n;
          for (var i = 0u; i < sizes.n; i++) {
            for (var j = 0u; j < sizes.n; j++) {
              let at = corner + i * sizes.n + j;
              if (j > i) {
                l[at] = 0.0;
                continue;
              }
              var sum = a[at];
              for (var k = 0u; k < j; k++) { sum -= l[corner + i * sizes.n + k] * l[corner + j * sizes.n + k]; }
              if (j == i) { l[at] = pivot_of(sum); } else { l[at] = sum / l[corner + j * sizes.n + j]; }
            }
          }
        }
      `,
    },
  ],
});
