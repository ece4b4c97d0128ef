import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chooseRepeated, repeatCandidates } from "./choose-repeated.ts";
import { type RepeatedStep, type StepShape, StepWalk } from "./step-walk.ts";

const repeatedStep = (step: StepShape, repeated: ReadonlySet<number>): RepeatedStep =>
  new StepWalk(step).run(Uint8Array.from(step.nodes, (_, id) => (repeated.has(id) ? 1 : 0)));

/**
 * Generates a random training step: forward nodes that read earlier values, then backward nodes. Each node has one
 * result.
 */
const randomStep = (maxForward: number): fc.Arbitrary<StepShape> =>
  fc
    .record({
      forward: fc.array(
        fc.record({ a: fc.nat(99), b: fc.nat(99), flops: fc.nat(20), bytes: fc.nat(9), repeats: fc.boolean() }),
        {
          minLength: 1,
          maxLength: maxForward,
        },
      ),
      backward: fc.array(fc.record({ a: fc.nat(99), bytes: fc.nat(9) }), { minLength: 1, maxLength: 12 }),
    })
    .map(({ forward, backward }) => {
      const size = forward.length;
      return {
        // Value 0 is an argument.
        bytes: [0, ...forward.map(({ bytes }) => bytes), ...backward.map(({ bytes }) => bytes)],
        nodes: [
          ...forward.map(({ a, b, flops, repeats }, i) => ({
            flops,
            inputs: [Math.max(0, i - (a % 3)), b % (i + 1)],
            outputs: [i + 1],
            isBackward: false,
            mayRepeat: repeats,
          })),
          ...backward.map(({ a }, i) => ({
            flops: 1,
            inputs: [Math.max(0, size - i) % (size + 1), i === 0 ? size : size + i, a % (size + 1)],
            outputs: [size + i + 1],
            isBackward: true,
            mayRepeat: false,
          })),
        ],
        returned: [size + backward.length],
      };
    });

/** Computes the peak from the set of live values at each execution, independently of `StepWalk`. */
const naive = (step: StepShape, repeated: ReadonlySet<number>): RepeatedStep => {
  const runs: { readonly reads: string[]; readonly writes: string[] }[] = [];
  const done = new Set<number>();
  let flops = 0;
  const nodeOf = (value: number): number => step.nodes.findIndex(({ outputs }) => outputs.includes(value));
  const nameOf = (value: number): string => (repeated.has(nodeOf(value)) ? `${value}'` : String(value));
  const neededFor = (values: readonly number[]): number[] =>
    values
      .map(nodeOf)
      .flatMap((id) => (repeated.has(id) && !done.has(id) ? [id, ...neededFor(step.nodes[id]!.inputs)] : []));
  for (const { inputs, outputs, isBackward } of step.nodes) {
    if (isBackward)
      for (const id of [...new Set(neededFor(inputs))].sort((a, b) => a - b)) {
        done.add(id);
        flops += step.nodes[id]!.flops;
        runs.push({
          reads: step.nodes[id]!.inputs.map(nameOf),
          writes: step.nodes[id]!.outputs.map((value) => `${value}'`),
        });
      }
    runs.push({
      reads: inputs.map((value) => (isBackward ? nameOf(value) : String(value))),
      writes: outputs.map(String),
    });
  }
  let peakBytes = 0;
  runs.forEach((_, at) => {
    const made = new Set(runs.slice(0, at + 1).flatMap(({ writes }) => writes));
    const needed = new Set([
      ...runs.slice(at).flatMap(({ reads }) => reads),
      ...runs[at]!.writes,
      ...step.returned.map(String),
    ]);
    const alive = [...made]
      .filter((name) => needed.has(name))
      .map((name) => step.bytes[Number(name.replace("'", ""))]!);
    peakBytes = Math.max(
      peakBytes,
      alive.reduce((sum, bytes) => sum + bytes, 0),
    );
  });
  return { peakBytes, flops };
};

const subsets = (ids: readonly number[]): Set<number>[] =>
  Array.from({ length: 2 ** ids.length }, (_, set) => new Set(ids.filter((__, i) => (set >> i) & 1)));

/** Returns a training step of a chain of layers. The backward pass reads the result of each layer once. */
const chain = (flops: readonly number[], bytes = 4): StepShape => {
  const layers = flops.length;
  return {
    bytes: [0, ...flops.map(() => bytes), ...flops.map(() => 1)],
    nodes: [
      ...flops.map((cost, i) => ({ flops: cost, inputs: [i], outputs: [i + 1], isBackward: false, mayRepeat: true })),
      ...flops.map((_, i) => ({
        flops: 1,
        inputs: [layers - i, i === 0 ? layers : layers + i],
        outputs: [layers + i + 1],
        isBackward: true,
        mayRepeat: false,
      })),
    ],
    returned: [2 * layers],
  };
};

describe("chooseRepeated", () => {
  it("simulates steps as they run", () => {
    fc.assert(
      fc.property(randomStep(10), fc.array(fc.nat(9)), (step, some) => {
        const repeated = new Set(some.filter((id) => step.nodes[id]?.mayRepeat));
        expect(repeatedStep(step, repeated)).toEqual(naive(step, repeated));
      }),
      { numRuns: 500 },
    );
  });

  it("equals the best subset for few candidates, and returns the lowest peak if no subset meets the limit", () => {
    fc.assert(
      fc.property(randomStep(7), fc.nat(60), (step, maxBytes) => {
        const all = subsets(step.nodes.flatMap(({ mayRepeat }, id) => (mayRepeat ? [id] : []))).map((set) =>
          naive(step, set),
        );
        const within = all.filter(({ peakBytes }) => peakBytes <= maxBytes);
        const { flops, peakBytes } = chooseRepeated(step, maxBytes);
        if (within.length > 0) {
          expect(peakBytes).toBeLessThanOrEqual(maxBytes);
          expect(flops).toBe(Math.min(...within.map((one) => one.flops)));
        } else expect(peakBytes).toBe(Math.min(...all.map((one) => one.peakBytes)));
      }),
      { numRuns: 200 },
    );
  });

  it("meets the limit for many candidates if repeating all does, never repeats in vain, and is close to the best subset", () => {
    let [own, best] = [0, 0];
    fc.assert(
      fc.property(randomStep(40), fc.double({ min: 0.3, max: 1, noNaN: true }), (step, share) => {
        const none = repeatedStep(step, new Set());
        const all = repeatedStep(step, new Set(repeatCandidates(step)));
        const maxBytes = Math.round(share * none.peakBytes);
        const choice = chooseRepeated(step, maxBytes);
        expect(choice.peakBytes).toBeLessThanOrEqual(Math.max(none.peakBytes, maxBytes));
        if (all.peakBytes <= maxBytes) {
          expect(choice.peakBytes).toBeLessThanOrEqual(maxBytes);
          expect(choice.flops).toBeLessThanOrEqual(all.flops);
        }
        if (none.peakBytes <= maxBytes) expect(choice.repeated).toEqual([]);
      }),
      { numRuns: 100, seed: 7 },
    );
    // 13 candidates: too many for the exact search of `chooseRepeated`, but few enough to check all subsets in the
    // test.
    const layers = 13;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: layers, maxLength: layers }),
        fc.integer({ min: 30, max: 50 }),
        (flops, maxBytes) => {
          const step = chain(flops);
          const within = subsets(repeatCandidates(step))
            .map((set) => repeatedStep(step, set))
            .filter(({ peakBytes }) => peakBytes <= maxBytes);
          const choice = chooseRepeated(step, maxBytes);
          if (within.length === 0) return;
          expect(choice.peakBytes).toBeLessThanOrEqual(maxBytes);
          own += choice.flops;
          best += Math.min(...within.map((one) => one.flops));
        },
      ),
      { numRuns: 10, seed: 3 },
    );
    expect(best).toBeGreaterThan(0);
    expect(own).toBeLessThan(1.5 * best);
  });

  it("is never worse than keeping every √n-th layer of a chain", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 13, maxLength: 150 }),
        fc.integer({ min: 1, max: 9 }),
        (flops, bytes) => {
          const step = chain(flops, bytes);
          const each = Math.ceil(Math.sqrt(flops.length));
          const inBlocks = repeatedStep(step, new Set(flops.flatMap((_, id) => ((id + 1) % each === 0 ? [] : [id]))));
          const choice = chooseRepeated(step, inBlocks.peakBytes);
          expect(choice.peakBytes).toBeLessThanOrEqual(inBlocks.peakBytes);
          expect(choice.flops).toBeLessThanOrEqual(inBlocks.flops);
        },
      ),
      { numRuns: 100 },
    );
  });
});
