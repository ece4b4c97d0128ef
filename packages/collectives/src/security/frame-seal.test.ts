import fc from "fast-check";
import { expect, test } from "vitest";
import { type FrameType, frameTypes } from "../wire/frame.ts";
import { FrameSeal, sealBytes } from "./frame-seal.ts";

const key = Uint8Array.from({ length: 32 }, (_, i) => i);
const frames = fc.array(
  fc.record({
    type: fc.constantFrom(...(Object.keys(frameTypes) as FrameType[])),
    payload: fc.uint8Array({ maxLength: 40 }),
  }),
  { minLength: 1, maxLength: 6 },
);
const seal = (
  list: readonly { readonly type: FrameType; readonly payload: Uint8Array }[],
): { type: FrameType; bytes: Uint8Array }[] => {
  const sealer = new FrameSeal(key);
  return list.map(({ type, payload }) => ({ type, bytes: Uint8Array.from(sealer.sealed(type, payload)) }));
};

test("opens sealed frames in order, with their original payloads", () => {
  fc.assert(
    fc.property(frames, (list) => {
      const opener = new FrameSeal(key);
      for (const [i, { type, bytes }] of seal(list).entries())
        expect([...opener.open(type, bytes)]).toEqual([...list[i]!.payload]);
    }),
  );
});

test("does not open the first frame that differs from the sent one, after any change in transit", () => {
  const position = fc.nat();
  const change = fc.oneof(
    fc.record({ kind: fc.constant("flip" as const), at: position, byte: position, bit: fc.nat(7) }),
    fc.record({ kind: fc.constant("type" as const), at: position }),
    fc.record({ kind: fc.constant("cut" as const), at: position, by: fc.integer({ min: 1, max: sealBytes + 3 }) }),
    fc.record({ kind: fc.constant("repeat" as const), at: position }),
    fc.record({ kind: fc.constant("drop" as const), at: position }),
  );
  fc.assert(
    fc.property(frames, change, (list, what) => {
      const sent = seal(list);
      const at = what.at % sent.length;
      const frame = sent[at]!;
      const received = sent.map(({ type, bytes }): { type: FrameType; bytes: Uint8Array } => ({
        type,
        bytes: Uint8Array.from(bytes),
      }));
      if (what.kind === "flip") received[at]!.bytes[what.byte % frame.bytes.length]! ^= 1 << what.bit;
      else if (what.kind === "type") received[at]!.type = frame.type === "control" ? "bye" : "control";
      else if (what.kind === "cut")
        received[at]!.bytes = frame.bytes.slice(0, Math.max(0, frame.bytes.length - what.by));
      else if (what.kind === "repeat") received.splice(at, 0, received[at]!);
      else received.splice(at, 1);
      const opener = new FrameSeal(key);
      const wrong = what.kind === "repeat" ? at + 1 : at;
      for (const [i, { type, bytes }] of received.entries()) {
        if (i === wrong) {
          expect(() => opener.open(type, bytes)).toThrow(expect.objectContaining({ code: "frame-seal" }));
          return;
        }
        opener.open(type, bytes);
      }
      expect(what.kind).toBe("drop"); // The last frame was dropped, so no later frame revealed the gap.
    }),
  );
});
