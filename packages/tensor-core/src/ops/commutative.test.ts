import fc from "fast-check";
import { expect, test } from "vitest";
import { operators } from "./table.ts";

const numbers = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, Infinity, -Infinity, Number.NaN, 2 ** 31 - 1),
  fc.float(),
  fc.integer(),
);

const commutative = Object.values(operators).filter((operator) => operator.commutative === true);

test("commutative operators exist", () => expect(commutative.map(({ name }) => name)).toContain("add"));

test.each(commutative.map(({ name, scalar }) => [name, scalar!] as const))(
  "%s: exchanged operands change no bit",
  (_, scalar) => {
    fc.assert(
      fc.property(numbers, numbers, fc.constantFrom("f32", "i32", "u32"), (a, b, dtype) => {
        expect(scalar([a, b], {}, dtype)).toBe(scalar([b, a], {}, dtype));
      }),
    );
  },
);
