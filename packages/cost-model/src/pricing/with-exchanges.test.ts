import fc from "fast-check";
import { expect, test } from "vitest";
import { madeUpStep } from "../../test/made-up-step.ts";
import { foldKernels } from "./fold-kernels.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import { codecSeconds, type PricedExchange } from "./priced-exchange.ts";
import { reprice } from "./reprice.ts";
import { computeSeconds, isStart, type KernelStep, type StartStep } from "./step-program.ts";
import { withExchanges } from "./with-exchanges.ts";

const { programOf, secondsOf, priceKernel, collectives } = madeUpStep;

const kernelOf = (bytes: number): KernelStep => {
  const price = priceKernel("code", { flops: 0, bytes });
  return { kind: "kernel", node: 0, name: "code exchange-0", scope: "exchange-0", args: {}, operator: "code", price };
};

const startOf = (bytes: number): StartStep => ({
  kind: "start",
  node: 0,
  name: "all-gather exchange-0",
  scope: "exchange-0",
  args: { scope: "exchange-0" },
  collective: "all-gather",
  axis: "data",
  bytes,
  price: collectives.data("all-gather", bytes),
});

/**
 * Returns an exchange of sequential messages with a kernel before each message, an independent kernel, and a kernel at
 * the end.
 */
const exchangeOf = (bytes: readonly number[]): PricedExchange => {
  const starts = bytes.map(startOf);
  const wait = (of: StartStep): FreeStep => ({ kind: "wait", step: { ...of, kind: "wait", start: 0 }, of });
  return {
    rounds: starts.map((start, i) => [...(i === 0 ? [] : [wait(starts[i - 1]!)]), kernelOf(start.bytes), start]),
    independent: [kernelOf(4)],
    after: [wait(starts.at(-1)!), kernelOf(8)],
  };
};

const tensors = fc.array(
  fc.record({ flops: fc.integer({ min: 0, max: 1e7 }), bytes: fc.integer({ min: 4, max: 1e6 }) }),
  {
    minLength: 1,
    maxLength: 6,
  },
);
const messages = fc.array(fc.integer({ min: 3, max: 1e6 }), { minLength: 1, maxLength: 3 });

test("contains all kernels and messages once, sends later messages after all first ones, and is not faster without overlap", () => {
  fc.assert(
    fc.property(tensors, fc.infiniteStream(messages), fc.boolean(), (some, sizes, alone) => {
      const program = programOf(some, false);
      const groups = (alone ? some.map((_, i) => [i]) : [some.map((_, i) => i)]).map((buckets) => {
        return { buckets, exchange: exchangeOf(sizes.next().value), priority: 1 + (buckets[0]! % 2) };
      });
      const both = (["wait-free", "none"] as const).map((overlap) => withExchanges(program, groups, overlap));
      for (const made of both) {
        const coded = groups.reduce((sum, { exchange }) => sum + codecSeconds(exchange), 0);
        expect(computeSeconds(made)).toBeCloseTo(computeSeconds(program) + coded, 12);
        const sent = made.filter(isStart).map(({ scope, bytes }) => `${scope} ${bytes}`);
        const expected = groups.flatMap(({ buckets, exchange }) =>
          exchange.rounds
            .flat()
            .flatMap((step) => (step.kind === "start" ? `exchange-${buckets[0]} ${step.bytes}` : [])),
        );
        expect(sent.slice().sort()).toEqual(["mean-loss 4", ...expected].sort());
        for (const { scope, priority } of made.filter(isStart))
          if (scope !== "mean-loss") expect(priority).toBe(1 + (Number(scope.slice("exchange-".length)) % 2));
        for (const step of made)
          if (step.kind === "wait") expect(made[step.start]).toMatchObject({ kind: "start", scope: step.scope });
      }
      const order = both[0]!.filter(isStart).map(({ scope }) => scope);
      const firsts = groups.map(({ buckets }) => order.indexOf(`exchange-${buckets[0]}`));
      const seconds = order.flatMap((scope, i) => (scope !== "mean-loss" && order.indexOf(scope) < i ? [i] : []));
      expect(Math.max(...firsts)).toBeLessThan(Math.min(Infinity, ...seconds));
      expect(secondsOf(both[0]!)).toBeLessThanOrEqual(secondsOf(both[1]!) * (1 + 1e-9));
    }),
    { numRuns: 60 },
  );
});

test("folded kernels take the same time, and the same links give the same prices", () => {
  fc.assert(
    fc.property(tensors, fc.boolean(), (some, encodes) => {
      const twice = freeSteps(programOf(some, encodes)).flatMap((step): FreeStep[] =>
        step.kind === "kernel" ? [step, step] : [step],
      );
      const program = linkedSteps(twice);
      const folded = foldKernels(program);
      expect(folded.length).toBeLessThan(program.length);
      expect(secondsOf(folded) / secondsOf(program)).toBeCloseTo(1, 9);
      expect(reprice(program, collectives)).toEqual(program);
    }),
    { numRuns: 40 },
  );
});

test("rejects groups that lack a bucket, and exchanges with several messages, in one line", () => {
  const program = programOf(
    [
      { flops: 1, bytes: 4 },
      { flops: 1, bytes: 8 },
    ],
    false,
  );
  const exchange = exchangeOf([12]);
  expect(() => withExchanges(program, [{ buckets: [0], exchange }], "none")).toThrow(
    "groups contain the buckets [0], but the program has [0, 1]; put each bucket into exactly one group",
  );
  const twice = withExchanges(
    program,
    [0, 1].map((bucket) => ({ buckets: [bucket], exchange: exchangeOf([12, 12]) })),
    "none",
  );
  expect(() => withExchanges(twice, [{ buckets: [0, 1], exchange }], "none")).toThrow(
    "bucket 0 is exchanged by 2 collectives",
  );
});
