import type { DType } from "@skein/tensor-core";
import type { FrameHeader, FrameType } from "../wire/frame.ts";

/** A frame to be sent. Its length is the payload's. */
export interface OutgoingFrame extends Omit<FrameHeader, "length"> {
  /** Of the frames that a link carries for its owner; hello, ping and bye are the link's own. */
  readonly type: Extract<FrameType, "data" | "control" | "error">;
  readonly payload: Uint8Array;
}

/** Who takes what a link brings. */
export interface LinkReceiver {
  /** The most bytes that a frame of this header may announce. */
  limit(header: FrameHeader): number;
  /** Where its payload is to land. Not asked for an empty payload. */
  target(header: FrameHeader): Uint8Array;
  /** A frame that is whole and right. */
  frame(header: FrameHeader, payload: Uint8Array): void;
  /**
   * The connection broke while the payload of this frame came: what is in its target is nothing, and the frame comes
   * again.
   */
  torn(header: FrameHeader): void;
  /**
   * Nothing more will come. Without an error the peer said goodbye after all that it had to send. With one the link can
   * still be written to, if the fault was in what came; its owner destroys it.
   */
  closed(error: Error | undefined): void;
}

/**
 * Frames to and from one peer, over whatever carries them. Control and error frames keep their order among themselves;
 * data frames may overtake one another where the link is `width` channels wide: their sequence tells their place.
 */
export interface Link {
  readonly peer: number;
  /** How many channels data are spread over. */
  readonly width: number;
  /** Take what comes from now on; control and error frames that came before are delivered first. */
  open(receiver: LinkReceiver): void;
  /**
   * Hand a frame to the system.
   *
   * @param handedOver called once the system has taken it, never before `write` returns, and not at all when the link
   * is lost.
   * @param freed called once its payload may change again, not before `handedOver`. Without it the payload never
   * changes.
   */
  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void;
  /** Somebody waits until payloads may change again. */
  hurry(): void;
  /** Give a sign of life on every channel that nothing is waiting to leave by. */
  ping(): void;
  /** Milliseconds since the most silent channel brought anything. */
  silence(): number;
  /**
   * Say goodbye behind all that was written, and end; resolves when the peer has ended too, or after a second without
   * that.
   */
  close(): Promise<void>;
  /** End without a goodbye. Nothing lands in memory after this returns; what was written may still leave. */
  destroy(): void;
}

/** Makes data smaller on the way and exact again at its end. */
export interface LinkCodec {
  /**
   * The coded form, in memory of its own, or undefined where it would not be smaller.
   *
   * @param dtype of the elements, where it is known.
   */
  encode(bytes: Uint8Array, dtype?: DType): Uint8Array | undefined;
  /** Fill `target` with what was encoded. Throws when `coded` is damaged or of another length. */
  decode(coded: Uint8Array, target: Uint8Array): void;
}
