import type { KernelStep, StepProgram } from "@skein/cost-model/pricing";
import { type OperatorRow, secondsByRank, type WorldStep } from "@skein/report";
import { modelScope } from "@skein/tensor-core/backend";
import { sum } from "../sum.ts";
import { slowest } from "./times.ts";

/** Returns the kernels of a program, by span name. */
const kernelsByName = (program: StepProgram): ReadonlyMap<string, readonly KernelStep[]> =>
  Map.groupBy(
    program.filter((step) => step.kind === "kernel"),
    ({ name }) => name,
  );

const sumOf = (kernels: readonly KernelStep[], of: (kernel: KernelStep) => number): number => sum(kernels.map(of));

/**
 * Returns whether flops or memory traffic limits the longest of the given kernels. Undefined if launch overhead
 * dominates this kernel.
 */
const boundBy = (kernels: readonly KernelStep[]): OperatorRow["boundBy"] => {
  const { price } = kernels.reduce((longest, next) => (next.price.seconds > longest.price.seconds ? next : longest));
  return price.boundBy === "start" ? undefined : price.boundBy;
};

/**
 * Sums kernel times by operator and model scope. Each sum is the time of all calls per step on the slowest rank, minus
 * the cost of recording spans.
 *
 * @param program Compiled step with predicted times, from which flops, bytes and predictions are computed.
 * @param shares Shares of the operators in the total time of all ranks, by span name.
 */
export const operatorRows = (
  steps: readonly WorldStep[],
  program: StepProgram,
  { shares, inKernelSeconds }: { readonly shares: ReadonlyMap<string, number>; readonly inKernelSeconds: number },
): OperatorRow[] => {
  const kernels = kernelsByName(program);
  const measured = secondsByRank(steps, "compute");
  const names = new Set(measured.flat().flatMap((sums) => [...sums.keys()]));
  const rows = [...names].map((name): OperatorRow => {
    const byRank = measured.map((stepsOfRank) =>
      stepsOfRank.map((sums) => {
        const found = sums.get(name);
        return found === undefined ? 0 : Math.max(0, found.seconds - found.calls * inKernelSeconds);
      }),
    );
    const seconds = slowest(byRank);
    const own = kernels.get(name) ?? [];
    const space = name.indexOf(" ");
    const [operator, scope] = space < 0 ? [name, ""] : [name.slice(0, space), name.slice(space + 1)];
    return {
      operator,
      scope: modelScope(scope),
      phase:
        measured.flatMap((stepsOfRank) => stepsOfRank.flatMap((sums) => sums.get(name)?.phase ?? []))[0] ?? "other",
      calls: Math.max(...measured.flat().map((sums) => sums.get(name)?.calls ?? 0)),
      seconds,
      share: shares.get(name) ?? 0,
      ...(own.length > 0 && {
        flops: sumOf(own, ({ price }) => price.flops),
        bytes: sumOf(own, ({ price }) => price.bytes),
        rooflineSeconds: sumOf(own, ({ price }) => price.rooflineSeconds),
        predictedSeconds: sumOf(own, ({ price }) => price.seconds),
        boundBy: boundBy(own),
      }),
    };
  });
  return rows.sort((a, b) => b.seconds.median - a.seconds.median);
};
