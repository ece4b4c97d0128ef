import { PassThrough } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { askFolder, askTemplate, Cancelled, type Terminal } from "./ask.ts";

/** Returns a simulated terminal that records the displayed text and presses keys in sequence. */
const terminal = (): Terminal & { shown(): string; press(...keys: readonly string[]): Promise<void> } => {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 30 });
  let shown = "";
  output.on("data", (bytes: Buffer) => (shown += bytes.toString()));
  return {
    input,
    output,
    shown: () => shown,
    press: async (...keys) => {
      for (const key of keys) {
        await setTimeout(20);
        input.write(key);
      }
    },
  };
};

test("selects the template with the keys; the first is the default template", async () => {
  for (const [keys, chosen] of [
    [["\r"], "images"],
    [["\u001B[B", "\r"], "text"],
    [["\u001B[B", "\u001B[B", "\r"], "own"],
  ] as const) {
    const person = terminal();
    const [answer] = await Promise.all([askTemplate(person), person.press(...keys)]);
    expect(answer).toBe(chosen);
    expect(person.shown()).toContain("What will it learn from?");
  }
});

test("reports an invalid folder at once and asks again", async () => {
  const person = terminal();
  const fault = (folder: string): string | undefined => (folder === "x" ? "x is not empty" : undefined);
  const [answer] = await Promise.all([askFolder(fault, person), person.press("x", "\r", "y", "\r")]);
  expect(person.shown()).toContain("x is not empty");
  expect(answer).toBe("xy");
});

test("accepts the proposed folder on Enter", async () => {
  const person = terminal();
  const [answer] = await Promise.all([askFolder(() => undefined, person), person.press("\r")]);
  expect(answer).toBe("my-run");
});

test("cancels both questions on Ctrl-C and Escape", async () => {
  for (const key of ["\u0003", "\u001B"])
    for (const ask of [askTemplate, (person: Terminal) => askFolder(() => undefined, person)]) {
      const person = terminal();
      const [answer] = await Promise.allSettled([ask(person), person.press(key)]);
      expect(answer).toMatchObject({ status: "rejected", reason: expect.any(Cancelled) });
    }
});
