import fc from "fast-check";
import { expect, test } from "vitest";
import type { ControllerMessage, MemberMessage } from "../members/control-messages.ts";
import { Interruption } from "../processes/interruption.ts";
import { StopRound } from "../controller/stop-round.ts";
import { StopSignal } from "./stop-signal.ts";

test("a stop requested between two steps ends the run after the first", () => {
  const signal = StopSignal.create(0);
  expect(signal.begin(1)).toBe(true);
  expect(signal.stopsAfter(1)).toBe(false);
  signal.decide(signal.request());
  expect(signal.begin(2)).toBe(false);
});

test("a stop requested during a step ends the run after it", () => {
  const signal = StopSignal.create(7);
  expect(signal.begin(8)).toBe(true);
  signal.decide(signal.request());
  expect(signal.stopsAfter(8)).toBe(true);
});

test("the first decision is final", () => {
  const signal = StopSignal.create(0);
  expect(signal.begin(1)).toBe(true);
  signal.decide(signal.request());
  signal.decide(5);
  expect([signal.stopsAfter(1), signal.begin(2)]).toEqual([true, false]);
});

test("a listener gets an interruption once, and so does one added later", () => {
  const interruption = new Interruption();
  const heard: string[] = [];
  interruption.listen(() => heard.push("first"));
  for (let i = 0; i < 3; i++) interruption.request();
  interruption.listen(() => heard.push("second"));
  interruption.request();
  expect(heard).toEqual(["first", "second"]);
});

/**
 * Model of the processes of a run and their controller. Messages are in transit until they are delivered, and ranks
 * wait for each other in each step.
 */
class World {
  readonly ranks: { readonly process: number; done: number; inStep: boolean; over: boolean }[];
  private readonly signals: StopSignal[];
  private readonly toMembers: ControllerMessage[][];
  private readonly toController: MemberMessage[][];
  private readonly round: StopRound;

  constructor(processes: number, ranksEach: number) {
    const each = <T>(make: () => T): T[] => Array.from({ length: processes }, make);
    this.signals = each(() => StopSignal.create(0));
    this.toMembers = each(() => []);
    this.toController = each(() => []);
    this.ranks = Array.from({ length: processes * ranksEach }, (_, rank) => ({
      process: Math.floor(rank / ranksEach),
      done: 0,
      inStep: false,
      over: false,
    }));
    const tell = (message: ControllerMessage): void => this.toMembers.forEach((inbox) => inbox.push(message));
    this.round = new StopRound({ processes, minStep: 1, tell });
  }

  /** Delivers a stop signal to a process. */
  interrupt(process: number): void {
    this.toController[process]!.push({ type: "interrupt" });
  }

  deliverToController(process: number): void {
    const message = this.toController[process]!.shift();
    if (message?.type === "interrupt") this.round.request();
    else if (message?.type === "begun") this.round.answer(process, message.step);
  }

  deliverToMember(process: number): void {
    const message = this.toMembers[process]!.shift();
    const signal = this.signals[process]!;
    if (message?.type === "stop") this.toController[process]!.push({ type: "begun", step: signal.request() });
    else if (message?.type === "stop-at") signal.decide(message.step);
  }

  /** Lets a rank begin a step. If all ranks have begun the step, lets the rank end the step. */
  turn(number: number): void {
    const rank = this.ranks[number]!;
    const signal = this.signals[rank.process]!;
    if (rank.over) return;
    if (!rank.inStep) {
      const allowed = signal.announce(rank.done + 1);
      if (allowed === undefined) return; // the rank would wait
      rank.inStep = allowed;
      rank.over = !allowed;
    } else if (this.ranks.every((other) => other.done > rank.done || (other.done === rank.done && other.inStep))) {
      rank.inStep = false;
      rank.done++;
      rank.over = signal.stopsAfter(rank.done);
    }
  }
}

test("however many processes get a stop signal, and whenever, all ranks end after the same step", () => {
  const shapes = fc.record({ processes: fc.integer({ min: 1, max: 4 }), ranksEach: fc.integer({ min: 1, max: 2 }) });
  const events = fc.array(
    fc.record({ kind: fc.constantFrom("turn", "turn", "turn", "interrupt", "controller", "member"), who: fc.nat(7) }),
    {
      maxLength: 120,
    },
  );
  fc.assert(
    fc.property(shapes, events, fc.nat(3), ({ processes, ranksEach }, story, last) => {
      const world = new World(processes, ranksEach);
      const happen = ({ kind, who }: { readonly kind: string; readonly who: number }): void => {
        if (kind === "turn") world.turn(who % world.ranks.length);
        else if (kind === "interrupt") world.interrupt(who % processes);
        else if (kind === "controller") world.deliverToController(who % processes);
        else world.deliverToMember(who % processes);
      };
      story.forEach(happen);
      world.interrupt(last % processes);
      // All messages in transit arrive, and all ranks that can proceed do so.
      for (let i = 0; i < 40; i++)
        for (let who = 0; who < 8; who++) for (const kind of ["turn", "controller", "member"]) happen({ kind, who });
      expect(world.ranks.map(({ over }) => over)).not.toContain(false);
      expect(new Set(world.ranks.map(({ done }) => done)).size).toBe(1);
    }),
    { numRuns: 2000 },
  );
});

test("a run ends at once on a signal until a listener lets a step end, and again when a listener says so", () => {
  const interruption = new Interruption();
  const endings = [interruption.endsAtOnce];
  for (const endsAtOnce of [true, false]) {
    interruption.listen(() => undefined, { endsAtOnce });
    endings.push(interruption.endsAtOnce);
  }
  expect(endings).toEqual([true, true, false]);
});
