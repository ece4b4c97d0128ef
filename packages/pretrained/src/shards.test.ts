import fc from "fast-check";
import { expect, test } from "vitest";
import { indexText, parseIndex, planShards } from "./shards.ts";

test("files hold every tensor once, in order, and are as full as the limit allows", () => {
  const sizes = fc.array(fc.nat(20), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 40 }), (bytes, most) => {
      const tensors = new Map(bytes.map((own, i) => [`t${i}`, own]));
      const shards = planShards(tensors, most);
      expect(shards.flatMap(({ names }) => names)).toEqual([...tensors.keys()]);
      const filled = shards.map(({ names }) => names.reduce((sum, name) => sum + tensors.get(name)!, 0));
      shards.forEach(({ names, file }, i) => {
        expect(names.length > 0 && (filled[i]! <= most || names.length === 1)).toBe(true);
        const next = shards[i + 1]?.names[0];
        if (next !== undefined) expect(filled[i]! + tensors.get(next)!).toBeGreaterThan(most);
        const digits = (count: number): string => String(count).padStart(5, "0");
        const several = `model-${digits(i + 1)}-of-${digits(shards.length)}.safetensors`;
        expect(file).toBe(shards.length === 1 ? "model.safetensors" : several);
      });
      const places = shards.flatMap(({ names, file }) => names.map((name): [string, string] => [name, file]));
      const read = parseIndex(indexText(shards, 0), "index");
      expect([...read].sort()).toEqual(places.sort());
    }),
  );
});
