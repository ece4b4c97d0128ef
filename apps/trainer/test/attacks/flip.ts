import type { Attack } from "./attack.ts";
import { drawFrom, Tally } from "./draw.ts";
import { saveCheckpoints } from "./saved-checkpoints.ts";

export const flip: Attack = {
  name: "flip",
  what: "one bit of a checkpoint's file is flipped: the checkpoint before is used, and why is said",
  fewTries: 300,
  tries: 100_000,
  run: async ({ count, seed, folder }) => {
    const { files, harmOf } = saveCheckpoints(folder);
    const bits = [...files].flatMap(([name, { length }]) => Array.from({ length: length * 8 }, (_, bit) => ({ name, bit })));
    const draw = drawFrom(seed);
    const tally = new Tally();
    const fallen: string[] = [];
    // Every bit where there are tries for it, else as many as are drawn.
    const chosen = count >= bits.length ? bits : Array.from({ length: count }, () => bits[draw(bits.length)]!);
    for (const { name, bit } of chosen) {
      const bytes = files.get(name)!.slice();
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      tally.add(name);
      const harm = harmOf(name, bytes);
      if (harm !== undefined) fallen.push(`${name}, bit ${bit}: ${harm}`);
    }
    return { counts: tally.counts, fallen };
  },
};
