import type { Attack } from "./attack.ts";
import { drawFrom, Tally } from "./draw.ts";
import { saveCheckpoints } from "./saved-checkpoints.ts";

export const tear: Attack = {
  name: "tear",
  what: "a checkpoint's file ends early, or its end is zeros: the checkpoint before is used, and why is said",
  fewTries: 100,
  tries: 20_000,
  run: async ({ count, seed, folder }) => {
    const { files, harmOf } = saveCheckpoints(folder);
    const tears = [...files].flatMap(([name, bytes]) =>
      Array.from({ length: bytes.length }, (_, at) => [
        { name, at, how: "cut", bytes: bytes.subarray(0, at) },
        { name, at, how: "zeros", bytes: new Uint8Array(bytes.length).fill(0).map((_, i) => (i < at ? bytes[i]! : 0)) },
      ]).flat(),
    );
    // Zeros where zeros were are no damage.
    const damaging = tears.filter(({ name, bytes }) => Buffer.compare(bytes, files.get(name)!) !== 0);
    const draw = drawFrom(seed);
    const tally = new Tally();
    const fallen: string[] = [];
    const chosen = count >= damaging.length ? damaging : Array.from({ length: count }, () => damaging[draw(damaging.length)]!);
    for (const { name, at, how, bytes } of chosen) {
      tally.add(`${name} ${how}`);
      const harm = harmOf(name, bytes);
      if (harm !== undefined) fallen.push(`${name}, ${how} from byte ${at}: ${harm}`);
    }
    return { counts: tally.counts, fallen };
  },
};
