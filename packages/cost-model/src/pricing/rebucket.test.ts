import fc from "fast-check";
import { expect, test } from "vitest";
import { type MadeUpTensor, madeUpStep } from "../../test/made-up-step.ts";
import { rebucket } from "./rebucket.ts";
import type { StepProgram } from "./step-program.ts";

const { programOf, secondsOf, priceKernel, collectives } = madeUpStep;

const shapeOf = (program: StepProgram): string =>
  program.map(({ kind, scope }) => `${kind === "kernel" ? "" : `${kind} `}${scope}`).join(", ");
const tensor = fc.record({ flops: fc.integer({ min: 0, max: 1e7 }), bytes: fc.integer({ min: 4, max: 1e6 }) });
const tensors = fc.array(tensor, { minLength: 1, maxLength: 7 });
const sum = (some: readonly MadeUpTensor[], of: (one: MadeUpTensor) => number): number =>
  some.reduce((total, one) => total + of(one), 0);

test("one tensor per group gives the original program", () => {
  fc.assert(
    fc.property(tensors, (some) => {
      const program = programOf(some);
      expect(
        rebucket(program, { groups: some.map((_, i) => [i]), overlap: "wait-free", priceKernel, collectives }),
      ).toEqual(program);
    }),
  );
});

test("a group is sent when its last gradient is ready, and waited for when its first result is needed", () => {
  const program = programOf([
    { flops: 1e6, bytes: 100 },
    { flops: 1e6, bytes: 200 },
    { flops: 1e6, bytes: 400 },
  ]);
  const together = rebucket(program, { groups: [[0, 1], [2]], overlap: "wait-free", priceKernel, collectives });
  expect(shapeOf(together)).toBe(
    "start mean-loss, layer/backward, layer/backward, exchange-0, start exchange-0, layer/backward, exchange-2, start exchange-2, " +
      "wait mean-loss, wait exchange-0, exchange-0, update, update, wait exchange-2, exchange-2, update",
  );
  const [, , , encode, start] = together;
  expect(encode).toMatchObject({
    price: { bytes: 300, seconds: priceKernel("quantize", { flops: 0, bytes: 300 }).seconds },
  });
  expect(start).toMatchObject({ bytes: 300, price: collectives.data("all-reduce", 300) });
});

test("without overlap nothing travels during computation: the step is the sum of its parts", () => {
  fc.assert(
    fc.property(tensors, fc.boolean(), (some, encodes) => {
      const groups = [some.map((_, i) => i)];
      const program = rebucket(programOf(some, encodes), { groups, overlap: "none", priceKernel, collectives });
      const computing = program.reduce((total, step) => total + (step.kind === "kernel" ? step.price.seconds : 0), 0);
      const bytes = sum(some, (one) => one.bytes);
      const sending = collectives.data("all-reduce", bytes).seconds + collectives.data("all-reduce", 4).seconds;
      expect(secondsOf(program)).toBeCloseTo(computing + sending, 12);
    }),
  );
});

test("bytes and work are preserved for any groups", () => {
  const cut = tensors.chain((some) =>
    fc.tuple(fc.constant(some), fc.array(fc.boolean(), { minLength: some.length, maxLength: some.length })),
  );
  fc.assert(
    fc.property(cut, ([some, ends]) => {
      const groups: number[][] = [[]];
      for (const i of some.keys()) {
        groups.at(-1)!.push(i);
        if (ends[i] === true && i < some.length - 1) groups.push([]);
      }
      const after = rebucket(programOf(some), { groups, overlap: "wait-free", priceKernel, collectives });
      const sent = after.flatMap((step) => (step.kind === "start" ? step.bytes : []));
      expect(sent.reduce((total, bytes) => total + bytes, 0)).toBe(4 + sum(some, (one) => one.bytes));
      expect(sent).toHaveLength(groups.length + 1);
      for (const [at, step] of after.entries())
        if (step.kind === "wait") {
          expect(step.start).toBeLessThan(at);
          expect(after[step.start]).toMatchObject({ kind: "start", name: step.name });
        }
    }),
  );
});

test.each([
  [[[0]], /groups contain the buckets \[0\], but the program has \[0, 1\]/],
  [[[0, 1], [1]], /put each bucket into exactly one group/],
  [[[0, 7]], /put each bucket into exactly one group/],
])("rejects groups %j", (groups, words) => {
  const program = programOf([
    { flops: 1, bytes: 4 },
    { flops: 1, bytes: 4 },
  ]);
  expect(() => rebucket(program, { groups, overlap: "wait-free", priceKernel, collectives })).toThrow(words);
});
