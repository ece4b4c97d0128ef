import { arrayRecords, epochOrder, positionOf, stepsPerEpoch } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type DataPosition,
  dataPositionSchema,
  positionFault,
  dataPositionOf,
  stepOffsetAfter,
} from "./data-position.ts";

const recordsOf = (count: number) =>
  arrayRecords({ inputs: NdArray.zeros("f32", [count, 1]), labels: NdArray.zeros("i32", [count]) });

/** Returns the data position after a step, for a run whose samples are not a stream. */
const positionAfter = (step: number, count: number, batch: number, stepOffset = 0): DataPosition =>
  dataPositionOf(
    step,
    { job: { batch }, data: { train: recordsOf(count) }, stepsPerEpoch: stepsPerEpoch(count, batch), stepOffset },
    [],
  );

describe("a run that resumes with a different batch", () => {
  test("resumes at the samples seen, without a partial batch, however often the batch changes", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.record({ batch: fc.integer({ min: 1, max: 40 }), steps: fc.integer({ min: 0, max: 30 }) }), {
          minLength: 2,
          maxLength: 5,
        }),
        (count, given) => {
          const legs = given.map(({ batch, steps }) => ({ steps, batch: Math.min(batch, count) }));
          let [step, offset] = [0, 0];
          let last: DataPosition | undefined;
          for (const { batch, steps } of legs) {
            const perEpoch = stepsPerEpoch(count, batch);
            if (last !== undefined) {
              const before = last as { epoch: number; step: number; batch: number };
              offset = stepOffsetAfter(last, step, { batch, stepsPerEpoch: perEpoch });
              const now = positionOf(step + offset, perEpoch);
              // Sample order of the epoch, which does not depend on the batch size.
              const order = epochOrder(1, before.epoch, count);
              const seen = order.slice(0, before.step * before.batch);
              if (now.epoch === before.epoch) {
                expect(now.step * batch).toBeLessThanOrEqual(seen.length);
                expect(now.step * batch).toBeGreaterThan(seen.length - batch);
              } else {
                expect(now).toEqual({ epoch: before.epoch + 1, step: 0 });
                expect(count - seen.length).toBeLessThan(batch); // too few samples for a batch remain
              }
            }
            step += steps;
            last = positionAfter(step, count, batch, offset);
            expect(positionFault(last, step)).toBeUndefined();
            expect(dataPositionSchema.parse(JSON.parse(JSON.stringify(last)))).toEqual(last);
            // If the run resumes with the same batch size, the offset is unchanged.
            expect(stepOffsetAfter(last, step, { batch, stepsPerEpoch: perEpoch })).toBe(offset);
          }
        },
      ),
      { seed: 1 },
    );
  });

  test.each([
    ["four epochs of 16 samples by fours are four epochs by twos", 16, 4, 16, 2, 16],
    ["and by eights", 16, 4, 16, 8, -8],
    ["half an epoch by twos", 16, 4, 2, 2, 2],
    ["a batch that was begun comes again", 16, 2, 3, 4, -2],
    ["a tail that fills no batch is over", 10, 3, 2, 5, -1],
    ["less is left than a batch", 10, 1, 9, 4, -7],
  ])("%s", (_, count, before, step, batch, offset) => {
    expect(
      stepOffsetAfter(positionAfter(step, count, before), step, { batch, stepsPerEpoch: stepsPerEpoch(count, batch) }),
    ).toBe(offset);
  });

  test("a checkpoint of an older version, without batch, counts steps if epochs have the same length", () => {
    const old = { epoch: 1, step: 2, stepsPerEpoch: 4 };
    expect(dataPositionSchema.parse(old)).toEqual(old);
    expect(stepOffsetAfter(old, 6, { batch: 4, stepsPerEpoch: 4 })).toBe(0);
  });

  test("rejects a position at another step than its checkpoint's", () => {
    expect(positionFault({ epoch: 1, step: 2, stepsPerEpoch: 4, batch: 4, offset: 1 }, 6)).toMatch(
      /which does not match/,
    );
    expect(positionFault({ epoch: 1, step: 2, stepsPerEpoch: 4, batch: 4, offset: -1 }, 7)).toBeUndefined();
  });
});
