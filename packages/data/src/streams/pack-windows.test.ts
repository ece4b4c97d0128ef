import fc from "fast-check";
import { expect, test } from "vitest";
import { gatherBatch } from "../records.ts";
import { textRecords } from "../text.ts";
import { packWindows, type TokenPiece } from "./pack-windows.ts";

const all = async <Of>(items: AsyncIterable<Of>): Promise<Of[]> => {
  const found: Of[] = [];
  for await (const item of items) found.push(item);
  return found;
};

const pieces = fc.array(fc.array(fc.nat(255), { maxLength: 9 }), { maxLength: 8 });

// oxlint-disable-next-line require-await
async function* from(texts: readonly (readonly number[])[], first = 0): AsyncGenerator<TokenPiece, void> {
  for (let i = first; i < texts.length; i++) yield { tokens: Int32Array.from(texts[i]!), offset: i };
}

test("windows are those of the token sequence, and continue from any position", async () => {
  await fc.assert(
    fc.asyncProperty(pieces, fc.integer({ min: 1, max: 7 }), async (texts, window) => {
      const row = Int32Array.from(texts.flat());
      const found = await all(packWindows(from(texts), window));
      const count = Math.max(0, Math.floor((row.length - 1) / window));
      expect(found).toHaveLength(count);
      if (count === 0) return;
      const whole = textRecords(row, window);
      for (const [i, { sample, position }] of found.entries()) {
        const { inputs, labels } = gatherBatch(whole, [i]);
        expect([...sample.subarray(0, window)]).toEqual(inputs!.toNumbers());
        expect([...sample.subarray(1)]).toEqual(labels!.toNumbers());
        expect(await all(packWindows(from(texts, position.offset), window, position.skip))).toEqual(found.slice(i));
      }
    }),
  );
});
