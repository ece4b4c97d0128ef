import type { KernelPlan } from "../../kernel.ts";
import type { RowScan } from "./rows.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * Computes running sums by definition: one invocation per row adds its elements in sequence. Reference for tests of
 * scans.
 */
export const cumsumNaive = ({ type, rows, size, reverse }: RowScan): KernelPlan => ({
  passes: [
    {
      label: "cumsum naive",
      bindings: [
        { name: "x", type: `array<${type}>`, source: { input: 0 }, access: "read" },
        { name: "y", type: `array<${type}>`, source: { output: 0 }, access: "write" },
      ],
      workgroupSize: lanes,
      groups: Math.ceil(rows / lanes),
      sizes: { rows, size },
      code: wgsl`
        fn main(group: u32, lane: u32) {
          let row = group * ${lanes}u + lane;
          if (row >= sizes.rows) { return; }
          var sum = ${type}();
          for (var i = 0u; i < sizes.size; i++) {
            let at = row * sizes.size + ${reverse ? "sizes.size - 1u - i" : "i"};
            sum += x[at];
            y[at] = sum;
          }
        }
      `,
    },
  ],
});
