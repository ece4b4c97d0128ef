import { setTimeout as rest } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { AttackedRun, type Transport } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";
import type { Draw } from "./draw.ts";
import { type Direction, Middle, type Passage, type Tamper } from "./middle.ts";

interface Deed {
  readonly what: string;
  /**
   * Manipulates a frame or TLS record. Returns the buffers to send instead. All other frames or records pass unchanged.
   */
  readonly do: (piece: Buffer, passage: Passage, draw: Draw, direction: Direction) => Promise<readonly Buffer[]>;
}

/** Manipulations of a single frame or TLS record. To swap two of them, `tampered` is used. */
const deeds: readonly Deed[] = [
  {
    what: "flip a bit",
    do: async (piece, _, draw) => {
      const changed = Buffer.from(piece);
      changed[draw(piece.length)]! ^= 1 << draw(8);
      return [changed];
    },
  },
  { what: "drop", do: async () => [] },
  { what: "repeat", do: async (piece) => [piece, piece] },
  { what: "exchange with the next", do: async (piece) => [piece] },
  {
    what: "delay",
    do: async (piece, _, draw) => {
      await rest(50 + draw(1500));
      return [piece];
    },
  },
  {
    what: "split",
    do: async (piece, _, draw) => {
      const parts: Buffer[] = [];
      for (let at = 0; at < piece.length; ) {
        const until = parts.length === 40 ? piece.length : at + 1 + draw(Math.ceil(piece.length / 20));
        parts.push(piece.subarray(at, until));
        at = until;
      }
      return parts; // each part is written and flushed before the next part
    },
  },
  {
    what: "cut",
    do: async (_, passage) => {
      passage.cut();
      return [];
    },
  },
  {
    what: "close in the middle",
    do: async (piece, passage, draw, direction) => {
      passage.endAfter(direction, piece.subarray(0, draw(piece.length)));
      return [];
    },
  },
  {
    what: "forward nothing more",
    do: async (_, passage) => {
      passage.freeze();
      return [];
    },
  },
];

/** Frame or TLS record of a run to manipulate. */
interface Place {
  readonly where: "coordinator" | "rank";
  /** Index of the connection among the connections to `where`. */
  readonly index: number;
  readonly direction: Direction;
  /** Index of the frame or TLS record among those sent in `direction`. */
  readonly piece: number;
}

const drawPlace = (draw: Draw): Place => ({
  where: draw(2) === 0 ? "coordinator" : "rank",
  index: draw(2),
  direction: draw(2) === 0 ? "up" : "down",
  // One half of the positions is in the handshake, the other half after the handshake.
  piece: draw(2) === 0 ? draw(4) : 4 + draw(25),
});

/** Returns a tamper function that applies the manipulation `deed` to one frame or TLS record. */
const tampered = (
  deed: Deed,
  { piece: chosen, direction }: Place,
  passage: Passage,
  draw: Draw,
  done: () => void,
): Tamper => {
  let number = -1;
  let held: Buffer | undefined;
  return async (piece) => {
    number++;
    if (held !== undefined) {
      const first = held;
      held = undefined;
      return [piece, first];
    }
    if (number !== chosen) return [piece];
    done();
    if (deed.what !== "exchange with the next") return deed.do(piece, passage, draw, direction);
    held = piece;
    return [];
  };
};

export const manInTheMiddle: Attack = {
  name: "man-in-the-middle",
  what: "a man in the middle of ranks and coordinator alters their messages: the same bits, after a restart at most",
  fewTries: 1,
  tries: 60,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw) => {
      const transport: Transport = number % 2 === 0 ? "tcp" : "tls";
      const deed = deeds[draw(deeds.length)]!;
      const place = drawPlace(draw);
      let done = false;
      let met = 0;
      const middle = await Middle.open((passage) => {
        // the manipulation has already been applied
        if (middle.whichLeadTo(place.where).at(-1) !== passage || met++ !== place.index) return;
        passage.tamper(
          place.direction,
          tampered(deed, place, passage, draw, () => {
            done = true;
          }),
        );
      });
      const run = new AttackedRun(`run-${number}`, { folder, transport, env: middle.env });
      try {
        run.start();
        const { harm, restarted } = await run.finish(sound);
        const counted = done ? `${deed.what} over ${transport}${restarted ? ", restarted" : ""}` : "not reached";
        const what = `${deed.what}, ${transport}, connection ${place.index} to the ${place.where}, ${place.direction}, piece ${place.piece}`;
        return { counted, harm: harm && `${what}: ${harm}` };
      } finally {
        run.kill();
        middle.close();
      }
    });
  },
};
