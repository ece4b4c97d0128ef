import fc from "fast-check";
import { expect, test } from "vitest";
import { maxWaiting, WaitingEvents } from "./waiting-events.ts";

type Kind = "start" | "step" | "note" | "evaluation" | "checkpoint" | "end";
interface Numbered {
  readonly type: Kind;
  readonly at: number;
}

const drained = (events: WaitingEvents<Numbered>): Numbered[] => {
  const all: Numbered[] = [];
  for (let event = events.take(); event !== undefined; event = events.take()) all.push(event);
  return all;
};
const isPassing = ({ type }: Numbered): boolean => type === "step" || type === "note";

test("law: order is kept, all important events arrive, and of steps and notes the newest, with the others counted", () => {
  const burst = fc.record({
    kind: fc.constantFrom<Kind>("step", "step", "note", "evaluation", "checkpoint"),
    many: fc.oneof(fc.nat(3), fc.nat(3 * maxWaiting)),
    taken: fc.oneof(fc.constant(0), fc.nat(2 * maxWaiting)),
  });
  fc.assert(
    fc.property(fc.array(burst, { maxLength: 8 }), (bursts) => {
      const events = new WaitingEvents<Numbered>();
      const emitted: Numbered[] = [];
      const arrived: Numbered[] = [];
      const emit = (type: Kind): void => {
        const event = { type, at: emitted.length };
        emitted.push(event);
        events.add(event);
      };
      emit("start");
      for (const { kind, many, taken } of bursts) {
        for (let i = 0; i < many; i++) emit(kind);
        for (let i = 0; i < taken; i++) arrived.push(...[events.take()].filter((event) => event !== undefined));
      }
      emit("end");
      const waited = drained(events);
      for (const type of ["step", "note"] as const) {
        const kept = waited.filter((event) => event.type === type);
        expect(kept.length).toBeLessThanOrEqual(maxWaiting);
        const all = emitted.filter((event) => event.type === type);
        expect(kept).toEqual(all.slice(all.length - kept.length));
      }
      arrived.push(...waited);
      expect(arrived.map(({ at }) => at)).toEqual(arrived.map(({ at }) => at).toSorted((a, b) => a - b));
      expect(arrived.filter((event) => !isPassing(event))).toEqual(emitted.filter((event) => !isPassing(event)));
      const lostCounts = [...(events.lostDescription ?? "").matchAll(/(\d+) (step|note)/g)];
      for (const type of ["step", "note"] as const) {
        const count = (all: readonly Numbered[]): number => all.filter((event) => event.type === type).length;
        const lost = Number(lostCounts.find(([, , kind]) => kind === type)?.[1] ?? 0);
        expect(count(arrived) + lost).toBe(count(emitted));
      }
    }),
    { numRuns: 60 },
  );
});

test("lost events are reported by their number", () => {
  const events = new WaitingEvents<{ readonly type: string }>();
  for (let i = 0; i < maxWaiting + 1; i++) events.add({ type: "step" });
  expect(events.lostDescription).toBe("1 step");
  for (let i = 0; i < maxWaiting + 12; i++) events.add({ type: "note" });
  expect(events.lostDescription).toBe("1 step and 12 notes");
  events.clear();
  expect(events.take()).toBeUndefined();
  for (let i = 0; i < maxWaiting; i++) events.add({ type: "step" });
  expect(events.lostDescription).toBe("1 step and 12 notes");
});
