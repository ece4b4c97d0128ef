import { type KernelNode, type ReductionStep, reductionSteps, type OperatorParams } from "@skein/tensor-core/backend";
import { columnBegin, maxColumnParts } from "../column-parts.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { chainScratchBytes, chainSteps } from "../reduction-chain.ts";
import { partBegin, type Team } from "../team/team.ts";

/** Bytes for the totals of column sums; see `assembly/sum.ts`. */
const totalBytes = 12 * 1024;
/** Estimated nanoseconds per summed element, in one thread. */
const elementNanoseconds = 0.15;

const stepsOf = (node: KernelNode<OperatorParams["sum"]>): ReductionStep[] =>
  reductionSteps(node.inputs[0]!.shape, node.params.dims);

type Fold = (input: number, output: number, step: ReductionStep) => void;

/**
 * Returns a fold that sums with a team of threads. Threads share the `outer` sums, or the columns if `outer` is 1. A
 * single sum is never split.
 */
const sumOnTeam = (team: Team, name: "sumF32" | "sumI32", totals: () => number): Fold => {
  const sum = team.indexOf(name);
  const columns = team.indexOf("sumColumns");
  return (input, output, { outer, size, inner }) => {
    const work = outer * size * inner * elementNanoseconds;
    if (outer === 1 && inner > 1 && name === "sumF32") {
      const parts = team.partsOf(work, maxColumnParts(inner));
      team.run(parts, (part, call) => {
        const [first, last] = [columnBegin(inner, part, parts), columnBegin(inner, part + 1, parts)];
        call(columns, input, output, size, inner, first, last, totals() + part * totalBytes);
      });
      return;
    }
    const parts = team.partsOf(work, outer);
    team.run(parts, (part, call) => {
      const first = partBegin(outer, part, parts);
      const count = partBegin(outer, part + 1, parts) - first;
      const [from, to] = [input + 4 * first * size * inner, output + 4 * first * inner];
      call(sum, from, to, count, size, inner, totals() + part * totalBytes);
    });
  };
};

export const sumKernel: Kernel = kernelOf({
  op: "sum",
  scratchBytes: (node, threads) => threads * totalBytes + chainScratchBytes(node, stepsOf(node)),
  bind: (node, _, __, team) => {
    const float = node.inputs[0]!.dtype === "f32";
    let totals = 0;
    const fold = sumOnTeam(team, float ? "sumF32" : "sumI32", () => totals);
    const chain = chainSteps(node, stepsOf(node), fold);
    return (inputs, outputs, scratch) => {
      totals = scratch;
      chain(inputs[0]!, outputs[0]!, scratch + team.threads * totalBytes);
    };
  },
});
