import type { DType } from "@skein/tensor-core";
import { frameFlags } from "../wire/frame.ts";
import { type Flow, frameCharge, frameCount } from "./flow.ts";
import type { LinkCodec, OutgoingFrame } from "./link.ts";

interface Message {
  readonly tag: number;
  readonly bytes: Uint8Array;
  readonly dtype: DType | undefined;
  readonly frames: number;
  /** Number of frames written to the link. */
  numStarted: number;
  /** Number of frames that were written to the link and whose bytes must not change yet. */
  unsettled: number;
  readonly settled: () => void;
}

interface Lane {
  readonly messages: Message[];
  credit: number;
  sequence: number;
}

export interface SendQueueOptions extends Flow {
  readonly lanes: number;
  /**
   * Maximum number of bytes that were written to the link and not yet accepted by the system. An urgent frame has to
   * wait for these bytes.
   */
  readonly outstandingBytes: number;
  readonly codec?: LinkCodec | undefined;
  /** Writes a frame to the link (`Link.write`). */
  readonly write: (frame: OutgoingFrame, handedOver: () => void, freed?: () => void) => void;
}

/**
 * Queue of messages to one peer, which are sent in frames. The next frame belongs to the highest lane with credit, so
 * that an urgent message can overtake another message between two frames. A lane without credit does not block other
 * lanes.
 */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #lanes: readonly Lane[];
  #outstanding = 0;
  #writing = false;

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.lanes }, () => ({ messages: [], credit: 0, sequence: 0 }));
  }

  /** Queues a message; `settled` is called when its bytes may be changed. */
  push(lane: number, tag: number, bytes: Uint8Array, settled: () => void, dtype?: DType): void {
    const frames = frameCount(bytes.byteLength, this.#options);
    this.#lanes[lane]!.messages.push({ tag, bytes, dtype, frames, numStarted: 0, unsettled: 0, settled });
    this.#pump();
  }

  /** Adds credit from the receiver for `bytes` more bytes on a lane. */
  grant(lane: number, bytes: number): void {
    this.#lanes[lane]!.credit += bytes;
    this.#pump();
  }

  /** Whether a message waits for credit, or for the system to accept its bytes. */
  get busy(): boolean {
    return this.#outstanding > 0 || this.#lanes.some(({ messages }) => messages.length > 0);
  }

  #pump(): void {
    if (this.#writing) return; // A link that completes writes immediately calls this method recursively.
    this.#writing = true;
    try {
      while (this.#outstanding < this.#options.outstandingBytes && this.#writeNext());
    } finally {
      this.#writing = false;
    }
  }

  #writeNext(): boolean {
    for (let stream = this.#lanes.length - 1; stream >= 0; stream--) {
      const lane = this.#lanes[stream]!;
      const message = lane.messages[0];
      if (message === undefined) continue;
      const { frameBytes, codec, write } = this.#options;
      const raw = message.bytes.subarray(message.numStarted * frameBytes, (message.numStarted + 1) * frameBytes);
      const charge = frameCharge(raw.byteLength);
      if (charge > lane.credit) continue;
      lane.credit -= charge;
      message.numStarted += 1;
      message.unsettled += 1;
      const last = message.numStarted === message.frames;
      if (last) lane.messages.shift();
      const coded = codec?.encode(raw, message.dtype);
      const flags = (last ? frameFlags.last : 0) | (coded === undefined ? 0 : frameFlags.coded);
      const { sequence } = lane;
      lane.sequence = (sequence + 1) >>> 0;
      this.#outstanding += charge;
      const freed = (): void => {
        message.unsettled -= 1;
        if (message.unsettled === 0 && message.numStarted === message.frames) message.settled();
      };
      const handedOver = (): void => {
        this.#outstanding -= charge;
        if (coded !== undefined) freed(); // The coded payload is in separate memory.
        this.#pump();
      };
      write(
        { type: "data", flags, stream, sequence, tag: message.tag, payload: coded ?? raw },
        handedOver,
        coded === undefined ? freed : undefined,
      );
      return true;
    }
    return false;
  }
}
