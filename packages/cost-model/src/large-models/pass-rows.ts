import type { Work } from "../hardware/roofline.ts";
import type { KernelPricer } from "../pricing/kernel-price.ts";
import { operatorsOf } from "./modules.ts";
import type { Operator, Part } from "./operator.ts";

/** Name of a pass within a step: the first four are passes of training, the last two of inference. */
export type PassName = "forward" | "recompute" | "backward" | "update" | "prefill" | "decode";

/** Metrics of an operator in one pass, totals over its repeats and calls. */
export interface OperatorRow extends Work {
  readonly part: string;
  readonly repeats: number;
  readonly module: string;
  readonly name: string;
  readonly operator: string;
  readonly pass: PassName;
  /** Number of kernel launches. */
  readonly calls: number;
  readonly seconds: number;
  readonly boundBy: "flops" | "bytes" | "start";
}

/** Function that returns the kernels of an operator in one pass. */
export type KernelsOf = (operator: Operator) => readonly Work[];

/**
 * Computes the metrics of each operator in a pass, such as seconds, flops and bytes. Operators whose kernels do not run
 * in the pass are left out.
 *
 * @param times Number of times that the pass runs.
 */
export const passRows = (
  priceOf: KernelPricer,
  parts: readonly Part[],
  pass: PassName,
  times: number,
  kernelsOf: KernelsOf,
): readonly OperatorRow[] =>
  parts.flatMap((part) =>
    part.modules.flatMap((module) =>
      module.operators.flatMap((operator) => {
        const kernels = kernelsOf(operator);
        if (kernels.length === 0) return [];
        const prices = kernels.map((work) => priceOf(operator.operator, work, operator.type));
        const count = part.repeats * times;
        const total = (values: readonly number[]): number => count * values.reduce((sum, value) => sum + value, 0);
        const longest = prices.reduce((a, b) => (b.seconds > a.seconds ? b : a));
        return [
          {
            part: part.name,
            repeats: part.repeats,
            module: module.name,
            name: operator.name,
            operator: operator.operator,
            pass,
            calls: count * kernels.length,
            seconds: total(prices.map(({ seconds }) => seconds)),
            flops: total(kernels.map(({ flops }) => flops)),
            bytes: total(kernels.map(({ bytes }) => bytes)),
            boundBy: longest.boundBy,
          },
        ];
      }),
    ),
  );

/** Computes the seconds of a pass over one repeat of a part. */
export const partSeconds = (priceOf: KernelPricer, part: Part, kernelsOf: KernelsOf): number =>
  operatorsOf(part).reduce(
    (sum, operator) =>
      sum +
      kernelsOf(operator).reduce((inner, work) => inner + priceOf(operator.operator, work, operator.type).seconds, 0),
    0,
  );
