import type { Attack } from "./attack.ts";
import { tryCases } from "./count-tries.ts";
import { saveCheckpoints } from "./saved-checkpoints.ts";

export const tear: Attack = {
  name: "tear",
  what: "a checkpoint's file ends early, or its end is zeros: the previous checkpoint is used, and the reason reported",
  fewTries: 100,
  tries: 20_000,
  run: (input) => {
    const { files, harmOf } = saveCheckpoints(input.folder);
    const tears = [...files].flatMap(([name, bytes]) =>
      Array.from({ length: bytes.length }, (_, at) => [
        { name, at, how: "cut", bytes: bytes.subarray(0, at) },
        { name, at, how: "zeros", bytes: new Uint8Array(bytes.length).fill(0).map((_, i) => (i < at ? bytes[i]! : 0)) },
      ]).flat(),
    );
    // Zeros that replace zeros do not damage a file.
    const damaging = tears.filter(({ name, bytes }) => Buffer.compare(bytes, files.get(name)!) !== 0);
    return tryCases(input, damaging, ({ name, at, how, bytes }) => {
      const harm = harmOf(name, bytes);
      return { counted: `${name} ${how}`, harm: harm && `${name}, ${how} from byte ${at}: ${harm}` };
    });
  },
};
