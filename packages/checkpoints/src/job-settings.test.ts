import { expect, test } from "vitest";
import { differencesOf, flatSettings } from "./job-settings.ts";

test("flattens settings, and hashes long values", () => {
  const long = "x".repeat(100);
  expect(
    flatSettings({ batch: 4, model: { kind: "mlp", hidden: [16, 8] }, absent: undefined, long, none: null }),
  ).toEqual({
    batch: "4",
    "model.kind": '"mlp"',
    "model.hidden": "[16,8]",
    long: expect.stringMatching(/^sha256 \w{12}$/),
    none: "null",
  });
});

test("lists a few differing keys with both values", () => {
  const before = flatSettings({ batch: 4, model: { hidden: [16] }, seed: 1 });
  expect(differencesOf(before, before)).toBe("");
  expect(differencesOf(undefined, before)).toBe("");
  expect(differencesOf(before, flatSettings({ batch: 2, model: { hidden: [64] }, steps: 9 }))).toBe(
    " (batch: 4, now 2; model.hidden: [16], now [64]; seed: 1, now not set; steps: not set, now 9)",
  );
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`key${i}`, i]));
  expect(differencesOf({}, flatSettings(many))).toMatch(/key5: not set, now 5; 3 more\)$/);
});
