import { describe, expect, test } from "vitest";
import { ArrayLedger } from "./array-ledger.ts";

describe("array ledger", () => {
  const spec = { dtype: "f32", shape: [4] } as const;

  test("a freed array cannot be read, and freeing twice is harmless", () => {
    const released: number[] = [];
    const ledger = new ArrayLedger<number>((address) => released.push(address));
    const array = ledger.open(spec, 64);
    ledger.free(array);
    ledger.free(array);
    expect(released).toEqual([64]);
    expect(() => array.memory).toThrow(/f32\[4\] was freed/);
  });

  test("a donated array hands its memory on or gives it back", () => {
    const released: number[] = [];
    const ledger = new ArrayLedger<number>((address) => released.push(address));
    const first = ledger.open(spec, 128);
    const second = ledger.takeOver(first, { dtype: "i32", shape: [2, 2] });
    expect([second.memory, second.dtype]).toEqual([128, "i32"]);
    expect(() => first.memory).toThrow(/donated/);
    expect(() => ledger.takeOver(first, spec)).toThrow(/donated/);
    ledger.free(first);
    expect(released).toEqual([]);
    ledger.consume(second);
    expect(released).toEqual([128]);
    expect(() => second.memory).toThrow(/donated/);
  });

  test("an array of another ledger is refused", () => {
    const array = new ArrayLedger<number>(() => undefined).open(spec, 0);
    expect(() => new ArrayLedger<number>(() => undefined).own(array)).toThrow(/another backend/);
  });
});
