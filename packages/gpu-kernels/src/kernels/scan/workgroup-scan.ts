import { wgsl } from "../../wgsl.ts";

/**
 * Returns WGSL of `fn scan(lane: u32, own: <type>) -> <type>`, which returns the sum over the earlier invocations of
 * the same segment and must be called by the complete workgroup. After this call, `fn scan_total(lane: u32) -> <type>`
 * returns the sum of the segment. log₂(segment) steps with one barrier each: the upper half of every block adds the
 * last sum of its lower half (Sklansky, Conditional-sum addition logic, 1960).
 *
 * @param segment Number of invocations that are summed together, a power of two.
 */
export const workgroupScan = (type: string, lanes: number, segment: number): string => {
  const steps: string[] = [];
  for (let step = 1; step < segment; step *= 2) {
    steps.push(wgsl`
      workgroupBarrier();
      if ((lane & ${step}u) != 0u) { sum += scan_sums[(lane & ${~(step - 1) >>> 0}u) - 1u]; scan_sums[lane] = sum; }
    `);
  }
  return wgsl`
    var<workgroup> scan_sums: array<${type}, ${lanes}>;
    fn scan(lane: u32, own: ${type}) -> ${type} {
      workgroupBarrier();
      var sum = own;
      scan_sums[lane] = own;
      ${steps}
      workgroupBarrier();
      if ((lane & ${segment - 1}u) == 0u) { return ${type}(); }
      return scan_sums[max(lane, 1u) - 1u];
    }
    fn scan_total(lane: u32) -> ${type} { return scan_sums[lane | ${segment - 1}u]; }
  `;
};
