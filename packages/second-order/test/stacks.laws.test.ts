import { type GradientTransformation, NdArray } from "@skein/tensor-core";
import { examples, normalArray } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  evaS,
  lamb,
  lars,
  muon,
  orthogonaliseUpdates,
  scaleByTrustRatio,
  shampoo,
  soap,
  type StackDims,
} from "../src/index.ts";
import { type Arrays, expectNear, walked } from "./walk.ts";

// Matrices of a stack [experts, inputs, outputs] are updated independently.

type Make = (stackDims: StackDims, axis: string) => GradientTransformation<never>;

const optimizers: Record<string, Make> = {
  orthogonaliseUpdates: (stackDims, axis) => orthogonaliseUpdates({ stackDims, axis }) as never,
  muon: (stackDims, axis) =>
    muon({ learningRate: 1, isHidden: (path) => path !== "other", weightDecay: 0.1, stackDims, axis }) as never,
  shampoo: (stackDims, axis) => shampoo({ stackDims, axis, blockSize: 3, ridge: 1e-3 }) as never,
  "shampoo, without grafting": (stackDims, axis) =>
    shampoo({ stackDims, axis, decay: 0.9, grafting: false, root: "newton", ridge: 1e-3 }) as never,
  soap: (stackDims, axis) => soap({ learningRate: 1, stackDims, axis }) as never,
  "soap, one side": (stackDims, axis) => soap({ learningRate: 1, stackDims, axis, largestSide: 3 }) as never,
  "eva-s": (stackDims) => evaS({ size: "free", stackDims }) as never,
  "eva-s, roots, clipped": (stackDims) =>
    evaS({ variant: "roots", learningRate: 0.1, klClip: 1e-4, stackDims }) as never,
  lars: (stackDims, axis) => lars({ learningRate: 1, weightDecay: 0.1, stackDims, axis }) as never,
  lamb: (stackDims, axis) => lamb({ learningRate: 1, weightDecay: 0.1, stackDims, axis }) as never,
  "trust ratio": (stackDims, axis) => scaleByTrustRatio({ stackDims, axis, epsilon: 1e-3 }) as never,
};

const shapes = fc.record({
  experts: fc.integer({ min: 1, max: 4 }),
  inputs: fc.integer({ min: 1, max: 5 }),
  outputs: fc.integer({ min: 1, max: 5 }),
  /** Whether experts have two leading dimensions, [1, experts, …]. */
  isDeep: fc.boolean(),
  numRanks: fc.integer({ min: 1, max: 3 }),
  seed: fc.integer({ min: 0, max: 1000 }),
});

test.each(Object.entries(optimizers))("%s updates each matrix of a stack independently", (_, make) => {
  fc.assert(
    fc.property(shapes, ({ experts, inputs, outputs, isDeep, numRanks, seed }) => {
      const each = Array.from({ length: experts }, (_each, expert) => `expert${expert}`);
      const size = inputs * outputs;
      const values = (at: number): readonly number[] => normalArray([experts * size], seed + 100 * at).toNumbers();
      const others = (at: number): Arrays => ({
        bias: normalArray([experts, outputs], seed + 100 * at + 1),
        other: normalArray([3, 2], seed + 100 * at + 2),
      });
      const deep = isDeep ? [1] : [];
      const stacked = (at: number): Arrays => ({
        stack: NdArray.from([...values(at)], [...deep, experts, inputs, outputs]),
        ...others(at),
      });
      const single = (at: number): Arrays => ({
        ...Object.fromEntries(
          each.map((name, i) => [name, NdArray.from(values(at).slice(i * size, (i + 1) * size), [inputs, outputs])]),
        ),
        ...others(at),
      });
      // A stack of vectors is not a matrix.
      const stacks: StackDims = (path) => (path === "stack" ? deep.length + 1 : path === "bias" ? 1 : 0);
      const options = {
        numRanks,
        first: (step: number) => step === 0,
        refresh: (step: number) => step !== 1,
      };
      const gradientsOf = (make_: (at: number) => Arrays): Arrays[] => [1, 2, 3].map(make_);
      const inStack = walked(make(stacks, "data"), stacked(0), gradientsOf(stacked), options);
      const alone = walked(make(stacks, "data"), single(0), gradientsOf(single), options);
      for (const [rank, steps] of inStack.entries())
        for (const [step, updates] of steps.entries()) {
          const expected = alone[rank]![step]!;
          expectNear(
            updates["stack"]!,
            each.flatMap((name) => expected[name]!),
            1e-4,
          );
          for (const path of ["bias", "other"]) expectNear(updates[path]!, expected[path]!, 1e-4);
        }
    }),
    { seed: 1, numRuns: examples(12, 200) },
  );
});

test("a kernel [height, width, inputs, outputs] is one matrix unless it is declared a stack", () => {
  const kernel = { w: normalArray([2, 2, 3, 4], 3) };
  const matrix = { w: NdArray.from(kernel.w.toNumbers(), [12, 4]) };
  const [asKernel, asMatrix] = [kernel, matrix].map((own) => walked(orthogonaliseUpdates(), own, [own])[0]![0]!["w"]!);
  expectNear(asKernel!, asMatrix!, 1e-6);
  const asStack = walked(orthogonaliseUpdates({ stackDims: () => 2 }), kernel, [kernel])[0]![0]!["w"]!;
  expect(Math.max(...asStack.map((value, i) => Math.abs(value - asMatrix![i]!)))).toBeGreaterThan(0.1);
});
