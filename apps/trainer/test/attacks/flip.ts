import type { Attack } from "./attack.ts";
import { tryCases } from "./count-tries.ts";
import { saveCheckpoints } from "./saved-checkpoints.ts";

export const flip: Attack = {
  name: "flip",
  what: "one bit of a checkpoint's file is flipped: the previous checkpoint is used, and the reason reported",
  fewTries: 300,
  tries: 100_000,
  run: (input) => {
    const { files, harmOf } = saveCheckpoints(input.folder);
    const bits = [...files].flatMap(([name, { length }]) =>
      Array.from({ length: length * 8 }, (_, bit) => ({ name, bit })),
    );
    return tryCases(input, bits, ({ name, bit }) => {
      const bytes = files.get(name)!.slice();
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const harm = harmOf(name, bytes);
      return { counted: name, harm: harm && `${name}, bit ${bit}: ${harm}` };
    });
  },
};
