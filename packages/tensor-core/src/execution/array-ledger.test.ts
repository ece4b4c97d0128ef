import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArrayStateError } from "../errors.ts";
import { type Graph, ownOrigin } from "../graph/graph.ts";
import type { MemoryPlan } from "../memory/memory-plan.ts";
import { ArgumentLoan, type Signature } from "./argument-loan.ts";
import { ArrayLedger, type OwnedArray } from "./array-ledger.ts";

const spec = { dtype: "f32", shape: [4] } as const;

/** Creates the signature of a graph with `count` inputs. The donated inputs in `takenOver` are reused as outputs. */
const signature = (count: number, donate: readonly number[], takenOver: readonly number[]): Signature => ({
  donate,
  graph: {
    nodes: Array.from({ length: count }, (_, id) => ({
      id,
      op: "input",
      inputs: [],
      params: { index: id },
      specs: [spec],
      ...ownOrigin,
    })),
    inputs: Array.from({ length: count }, (_, id) => id),
    outputs: takenOver.map((node) => ({ node, output: 0 })),
  } satisfies Graph,
  plan: { outputs: takenOver.map((index) => ({ region: "input", index, offset: 0 })) } as unknown as MemoryPlan,
});

const ledgerOf = (): { ledger: ArrayLedger<number>; released: number[] } => {
  const released: number[] = [];
  return { ledger: new ArrayLedger<number>((address) => released.push(address)), released };
};

describe("array ledger", () => {
  test("a freed array cannot be read, and freeing twice is harmless", () => {
    const { ledger, released } = ledgerOf();
    const array = ledger.open(spec, 64);
    ledger.free(array);
    ledger.free(array);
    expect(released).toEqual([64]);
    expect(() => array.memory).toThrow(/f32\[4\] was freed/);
    expect(array.state).toBe("freed");
  });

  test("a donated array passes its memory on or releases it", () => {
    const { ledger, released } = ledgerOf();
    const [first, other] = [ledger.open(spec, 128), ledger.open(spec, 256)];
    const loan = new ArgumentLoan(signature(2, [0, 1], [0]), ledger, [first, other]);
    expect([first.state, loan.memories]).toEqual(["given", [128, 256]]);
    const [second] = loan.settle(() => -1);
    expect([second!.memory, first.state, other.state, released]).toEqual([128, "donated", "donated", [256]]);
    expect(() => first.memory).toThrow(/was given away to a compiled function \(donated\)/);
    ledger.free(first);
    expect(released).toEqual([256]);
    ledger.free(second!);
    expect(released).toEqual([256, 128]);
  });

  test("arrays and blocks of owners that were dropped are released after a collection, others are kept", async () => {
    const { ledger, released } = ledgerOf();
    const kept = ledger.open(spec, 1000);
    let owner: object | undefined = {};
    ledger.attach(owner, [500, 501]);
    for (let i = 0; i < 20; i++) ledger.open(spec, i);
    expect(ledger.live).toEqual({ count: 21, bytes: 336 });
    expect(ledger.describeLive()).toBe("21 live arrays hold 336 bytes");
    await Promise.all([ledger.reclaim(), ledger.reclaim(() => released.length > 0)]);
    // The engine may still reference the last array.
    expect(released.length).toBeGreaterThanOrEqual(19);
    expect(released).not.toContain(500);
    expect(owner).toBeTypeOf("object");
    owner = undefined;
    await ledger.reclaim();
    expect(released).toEqual(expect.arrayContaining([500, 501]));
    expect(kept.memory).toBe(1000);
  });

  test("runs request a collection when live arrays have grown by 128 MiB or 65,536 arrays, and not earlier", async () => {
    const { ledger } = ledgerOf();
    const large = { dtype: "f32", shape: [2 ** 23] } as const; // 32 MiB
    const kept = Array.from({ length: 4 }, (_, i) => ledger.open(large, i));
    expect(ledger.reclaimIfGrown()).toBeUndefined();
    kept.push(ledger.open(large, 4));
    const relief = ledger.reclaimIfGrown();
    expect(relief).toBeInstanceOf(Promise);
    await relief;
    expect(ledger.reclaimIfGrown()).toBeUndefined();
    for (const array of kept.splice(1)) ledger.free(array);
    for (let i = 5; i < 10; i++) kept.push(ledger.open(large, i));
    expect(ledger.reclaimIfGrown()).toBeInstanceOf(Promise);
    expect(kept).toHaveLength(6);

    const many = ledgerOf().ledger;
    const small = Array.from({ length: 2 ** 16 }, (_, i) => many.open(spec, i));
    expect(many.reclaimIfGrown()).toBeUndefined();
    small.push(many.open(spec, -1));
    const other = many.reclaimIfGrown();
    expect(other).toBeInstanceOf(Promise);
    await other;
    expect(many.live.count).toBe(small.length);
    expect(many.reclaimIfGrown()).toBeUndefined();
  });

  test("an array of another ledger is rejected", () => {
    const array = ledgerOf().ledger.open(spec, 0);
    expect(() => ledgerOf().ledger.own(array)).toThrow(/another backend/);
  });

  test("a donated array is exclusive until the run has ended", () => {
    const { ledger, released } = ledgerOf();
    const array = ledger.open(spec, 64);
    const loan = new ArgumentLoan(signature(1, [0], []), ledger, [array]);
    for (const donate of [[], [0]])
      expect(() => new ArgumentLoan(signature(1, donate, []), ledger, [array])).toThrow(/has not ended/);
    expect(() => array.memory).toThrow(/partly overwritten; await that call/);
    loan.lose();
    expect([array.state, released]).toEqual(["lost", [64]]);
    expect(() => array.memory).toThrow(/to a call that failed.*last checkpoint/);
  });

  test("an array that a run reads cannot be donated, and a rejected loan lends nothing", () => {
    const { ledger } = ledgerOf();
    const [read, free] = [ledger.open(spec, 64), ledger.open(spec, 128)];
    const loan = new ArgumentLoan(signature(1, [], []), ledger, [read]);
    expect(() => new ArgumentLoan(signature(2, [1], []), ledger, [free, read])).toThrow(
      /a call still reads it; await that first/,
    );
    expect([free.state, read.state, read.memory]).toEqual(["owned", "lent", 64]);
    loan.settle(() => -1);
    expect(read.state).toBe("owned");
  });

  test("memory that a failed collective may use is never released", () => {
    const { ledger, released } = ledgerOf();
    const [read, given, plain] = [ledger.open(spec, 1), ledger.open(spec, 2), ledger.open(spec, 3)];
    new ArgumentLoan(signature(3, [1, 2], []), ledger, [read, given, plain]).lose(new Set([0, 1]));
    expect([read.state, given.state, plain.state]).toEqual(["lent", "lost", "lost"]);
    expect(read.memory).toBe(1);
    for (const array of [read, given, plain]) ledger.free(array);
    expect(released).toEqual([3]);
  });

  test("memory is released once, when its array has ended and no run uses it, in any order of events", () => {
    const event = fc.oneof(
      fc.record({ kind: fc.constantFrom("open", "free", "read"), at: fc.nat(5) }),
      fc.record({
        kind: fc.constant("begin"),
        at: fc.nat(5),
        other: fc.nat(5),
        donate: fc.subarray([0, 1]),
        takenOver: fc.boolean(),
      }),
      fc.record({ kind: fc.constantFrom("settle", "give back", "lose"), at: fc.nat(5) }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { ledger, released } = ledgerOf();
        const arrays: OwnedArray<number>[] = [];
        const loans: {
          loan: ArgumentLoan<number>;
          uses: readonly OwnedArray<number>[];
          memories: readonly number[];
        }[] = [];
        let next = 0;
        for (const one of events) {
          if (one.kind === "open" || arrays.length === 0) {
            arrays.push(ledger.open(spec, next++));
            continue;
          }
          const array = arrays[one.at % arrays.length]!;
          if (one.kind === "free") ledger.free(array);
          else if (one.kind === "read") {
            const readable = array.state === "owned" || array.state === "lent";
            if (readable) expect(released).not.toContain(array.memory);
            else expect(() => array.memory).toThrow(ArrayStateError);
          } else if ("other" in one) {
            const uses = [array, arrays[one.other % arrays.length]!];
            const states = uses.map(({ state }) => state);
            try {
              const loan = new ArgumentLoan(
                signature(2, one.donate, one.takenOver ? one.donate.slice(0, 1) : []),
                ledger,
                uses,
              );
              loans.push({ loan, uses, memories: loan.memories });
              // An array donated to a run must not be used by any other run.
              for (const position of one.donate)
                expect(loans.filter(({ memories }) => memories.includes(loan.memories[position]!))).toHaveLength(1);
            } catch (error) {
              expect(error).toBeInstanceOf(ArrayStateError);
              expect(uses.map(({ state }) => state)).toEqual(states);
            }
          } else if (loans.length > 0) {
            const [{ loan }] = loans.splice(one.at % loans.length, 1) as [(typeof loans)[number]];
            if (one.kind === "settle") arrays.push(...loan.settle(() => next++));
            else if (one.kind === "give back") loan.giveBack();
            else loan.lose();
          }
          expect(ledger.live).toEqual({ count: next - released.length, bytes: 16 * (next - released.length) });
          for (const { memories } of loans) for (const memory of memories) expect(released).not.toContain(memory);
        }
        for (const { loan } of loans) loan.lose();
        for (const array of arrays) ledger.free(array);
        expect(released.toSorted((a, b) => a - b)).toEqual(Array.from({ length: next }, (_, address) => address));
        expect(ledger.live).toEqual({ count: 0, bytes: 0 });
      }),
      { numRuns: 500 },
    );
  });
});
