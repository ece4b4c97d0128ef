import type { DType } from "@skein/tensor-core";
import type { FrameHeader, FrameType } from "../wire/frame.ts";

/** A frame to send. Its length is that of the payload. */
export interface OutgoingFrame extends Omit<FrameHeader, "length"> {
  /** Type of a frame that a link carries for its owner; hello, ping and bye are the link's own frames. */
  readonly type: Extract<FrameType, "data" | "control" | "error">;
  readonly payload: Uint8Array;
}

/** Receiver of a link's frames. */
export interface LinkReceiver {
  /** Returns the maximum payload length for a frame with this header, bytes. */
  limit(header: FrameHeader): number;
  /** Returns the memory for the frame's payload. Not called for an empty payload. */
  target(header: FrameHeader): Uint8Array;
  /** Called for each complete and valid frame. */
  frame(header: FrameHeader, payload: Uint8Array): void;
  /**
   * Called if the connection broke in the middle of this frame's payload. The contents of its target are invalid, and
   * the frame will be sent again.
   */
  torn(header: FrameHeader): void;
  /**
   * Called when nothing more will be received. Without an error, the peer said goodbye after everything that it had to
   * send. With an error, the link can still be written to if the fault was in the received bytes; its owner destroys
   * it.
   */
  closed(error: Error | undefined): void;
}

/**
 * Frames to and from one peer, over any kind of connection. Control and error frames keep their order among themselves.
 * Data frames may overtake one another if the link has more than one channel (`width`); their sequence numbers define
 * their order.
 */
export interface Link {
  readonly peer: number;
  /** Number of channels over which data frames are spread. */
  readonly width: number;
  /** Starts delivering frames; control and error frames that were received before come first. */
  open(receiver: LinkReceiver): void;
  /**
   * Writes a frame.
   *
   * @param handedOver called once the system has accepted the frame, never before `write` returns, and not at all if
   * the link is lost.
   * @param freed called once the payload may be changed, not before `handedOver`. Absent: the payload never changes.
   */
  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void;
  /** Notes that a thread waits until payloads may be changed. */
  hurry(): void;
  /** Sends a sign of life on every channel that has no pending writes. */
  ping(): void;
  /** Returns the longest time since any channel received something, milliseconds. */
  silence(): number;
  /**
   * Sends a goodbye after all pending writes and closes the link; resolves when the peer has closed it too, or after
   * one second.
   */
  close(): Promise<void>;
  /**
   * Closes the link without a goodbye. Nothing is written to memory after this call returns; pending writes may still
   * be sent.
   */
  destroy(): void;
}

/** Lossless compression of data on a link. */
export interface LinkCodec {
  /**
   * Returns the coded form in separate memory, or undefined if it would not be smaller.
   *
   * @param dtype dtype of the elements. Absent: unknown.
   */
  encode(bytes: Uint8Array, dtype?: DType): Uint8Array | undefined;
  /** Decodes into `target`. Throws if `coded` is damaged or decodes to another length. */
  decode(coded: Uint8Array, target: Uint8Array): void;
}
