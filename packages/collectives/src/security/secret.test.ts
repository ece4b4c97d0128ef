import { expect, test } from "vitest";
import { checkSecret, newSecret } from "./secret.ts";

test("a secret has 32 bytes at least, however few characters they are", () => {
  for (const secret of ["x".repeat(32), "é".repeat(16), newSecret()]) expect(() => checkSecret(secret)).not.toThrow();
  for (const secret of ["", "x".repeat(31), "é".repeat(15)])
    expect(() => checkSecret(secret)).toThrow(/has \d+ bytes and needs at least 32/);
});
