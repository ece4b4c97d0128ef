import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countWindow, type CountHistory, recordCounts } from "./count-history.ts";
import { expertCounts, type Routing } from "./routing.ts";
import {
  recordRouting,
  replayRoutings,
  type RoutingRecord,
  routingRecord,
  routingRecordFromJson,
  type RoutingRecordJson,
  routingRecordToJson,
} from "./routing-record.ts";

const routings = fc.array(
  fc
    .array(fc.constantFrom([0, 1], [1, 2], [2, -1], [-1, -1]), { maxLength: 4 })
    .map((tokens): Routing => ({ numExperts: 3, numChoices: 2, choices: Int32Array.from(tokens.flat()) })),
  { maxLength: 6 },
);
const recordOf = (all: readonly Routing[], maxSteps: number): RoutingRecord =>
  all.reduce((record, routing, step) => recordRouting(record, 10 * step, routing), routingRecord(maxSteps));

describe("a routing record", () => {
  test("keeps the last steps with their numbers, and survives JSON", () => {
    fc.assert(
      fc.property(routings, fc.integer({ min: 1, max: 4 }), (all, maxSteps) => {
        const record = recordOf(all, maxSteps);
        expect(record.steps).toEqual(all.map((routing, step) => ({ step: 10 * step, routing })).slice(-maxSteps));
        const json = JSON.parse(JSON.stringify(routingRecordToJson(record))) as RoutingRecordJson;
        expect(routingRecordFromJson(json)).toEqual(record);
      }),
    );
  });

  test("fills a window of counts in a replay as in the original steps", () => {
    fc.assert(
      fc.property(routings, fc.integer({ min: 1, max: 4 }), (all, maxSteps) => {
        let [live, replayed]: CountHistory[] = [countWindow(3, maxSteps), countWindow(3, maxSteps)];
        for (const routing of all) live = recordCounts(live!, expertCounts(routing));
        for (const { routing } of replayRoutings(recordOf(all, maxSteps)))
          replayed = recordCounts(replayed!, expertCounts(routing));
        expect(replayed).toEqual(live);
      }),
    );
  });

  test("replays from a given step, and continues step numbers in further passes", () => {
    const token: Routing = { numExperts: 1, numChoices: 1, choices: Int32Array.of(0) };
    const record = recordOf([token, token, token], 3);
    expect([...replayRoutings(record, { from: 5, numTimes: 2 })].map(({ step }) => step)).toEqual([10, 20, 21, 31]);
    expect([...replayRoutings(routingRecord(2), { numTimes: 3 })]).toEqual([]);
  });

  test("rejects an invalid record", () => {
    const json = { maxSteps: 1, steps: [{ step: 0, numExperts: 2, numChoices: 1, choices: [0, 1] }] };
    const [only] = json.steps;
    expect(() => routingRecordFromJson({ ...json, maxSteps: 0 })).toThrow(/maxSteps is 0/);
    expect(() => routingRecordFromJson({ ...json, steps: [only!, only!] })).toThrow(/2 steps exceed maxSteps 1/);
    expect(() => routingRecordFromJson({ maxSteps: 2, steps: [only!, only!] })).toThrow(
      /step 0 does not follow step 0/,
    );
    expect(() => routingRecordFromJson({ ...json, steps: [{ ...only!, choices: [0.5] }] })).toThrow(/choice 0\.5/);
    expect(() => routingRecordFromJson({ ...json, steps: [{ ...only!, choices: [2] }] })).toThrow(/expert 2 of 2/);
  });
});
