import { expect, test } from "vitest";
import { checkSecret, randomSecret } from "./secret.ts";

test("requires secrets of at least 32 bytes, in any number of characters", () => {
  for (const secret of ["x".repeat(32), "é".repeat(16), randomSecret()])
    expect(() => checkSecret(secret)).not.toThrow();
  for (const secret of ["", "x".repeat(31), "é".repeat(15)])
    expect(() => checkSecret(secret)).toThrow(/has \d+ bytes and needs at least 32/);
});
