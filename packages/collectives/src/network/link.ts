import type { DType } from "@skein/tensor-core";
import type { FrameHeader, FrameType } from "../wire/frame.ts";

/** A frame to send. Its length is the length of the payload. */
export interface OutgoingFrame extends Omit<FrameHeader, "length"> {
  /** Type of the frame. Frames of the link itself, such as hello, ping and bye, have other types. */
  readonly type: Extract<FrameType, "data" | "control" | "error">;
  readonly payload: Uint8Array;
}

/** Receiver of a link's frames. */
export interface LinkReceiver {
  /** Returns the maximum payload length for a frame with this header, in bytes. */
  limit(header: FrameHeader): number;
  /** Returns the memory for the frame's payload. Not called for an empty payload. */
  target(header: FrameHeader): Uint8Array;
  /** Called for each complete and valid frame. */
  frame(header: FrameHeader, payload: Uint8Array): void;
  /**
   * Called if the connection broke in the middle of this frame's payload. The contents of the frame's target are
   * invalid, and the frame will be sent again.
   */
  torn(header: FrameHeader): void;
  /**
   * Called when no more frames will be received. If `error` is undefined, the peer has sent a goodbye after all its
   * frames. If `error` was caused by received bytes, the link may still accept writes; the owner of the link then
   * destroys the link.
   */
  closed(error: Error | undefined): void;
}

/**
 * Carries frames to and from one peer, over any kind of connection. Control and error frames are delivered in the order
 * in which they were sent. Data frames may overtake one another if the link has more than one channel (`width`). The
 * sequence numbers of the data frames define their order.
 */
export interface Link {
  readonly peer: number;
  /** Number of channels over which data frames are distributed. */
  readonly width: number;
  /** Starts delivering frames, beginning with the control and error frames received before this call. */
  open(receiver: LinkReceiver): void;
  /**
   * Writes a frame.
   *
   * @param handedOver called when the system has accepted the frame, never before `write` returns, and never if the
   * link is lost.
   * @param freed called when the payload may be changed, not before `handedOver`. Absent: the payload never changes.
   */
  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void;
  /** Informs the link that a thread waits for permission to change the payloads of sent frames. */
  hurry(): void;
  /** Sends a ping on every channel without pending writes. */
  ping(): void;
  /** Returns the longest time, over all channels, since data was last received on a channel, in milliseconds. */
  silence(): number;
  /**
   * Sends a goodbye after all pending writes, and closes the link. Resolves when the peer has also closed the link, or
   * after one second.
   */
  close(): Promise<void>;
  /**
   * Closes the link without a goodbye. Received bytes are no longer stored after this call returns; pending writes may
   * still be sent.
   */
  destroy(): void;
}

/** Lossless compression of data on a link. */
export interface LinkCodec {
  /**
   * Returns the coded bytes in separate memory, or undefined if coding would not reduce the size.
   *
   * @param dtype dtype of the elements. Absent: unknown.
   */
  encode(bytes: Uint8Array, dtype?: DType): Uint8Array | undefined;
  /** Decodes into `target`. Throws if `coded` is damaged or decodes to another length. */
  decode(coded: Uint8Array, target: Uint8Array): void;
}
