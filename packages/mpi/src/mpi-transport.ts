import {
  after,
  type Eventually,
  type MessageMemory,
  type SendHandle,
  type Transport,
} from "@skein/collectives/transport";
import { InvariantError } from "@skein/tensor-core";
import { largestCount } from "./addon.ts";
import type { MpiLane } from "./lane.ts";
import type { Answer } from "./requests.ts";

/** A message in flight. */
interface Sending {
  answer: Answer | undefined;
  readonly whenAnswered: Eventually<Answer>;
  readonly tag: number;
}

/**
 * Sends and receives messages by MPI's point-to-point calls, directly from and to the request's memory. Messages
 * between two ranks are matched in order, regardless of their tags. Therefore, if a peer has started another
 * collective, this rank detects the mismatch instead of waiting.
 */
export class MpiTransport implements Transport {
  readonly rank: number;
  readonly worldSize: number;
  private readonly lane: MpiLane;
  private readonly memory: MessageMemory;
  private readonly limit: number;
  private readonly sent: number[];
  private readonly sending: Map<number, Sending>[];
  private readonly borrowed: Uint8Array[][];

  /**
   * Creates the transport of one lane.
   *
   * @param limit maximum number of bytes per MPI call.
   */
  constructor(lane: MpiLane, memory: MessageMemory, limit: number = largestCount) {
    this.rank = lane.rank;
    this.worldSize = lane.worldSize;
    this.lane = lane;
    this.memory = memory;
    this.limit = limit;
    const perPeer = Array.from({ length: lane.worldSize });
    this.sent = perPeer.map(() => 0);
    this.sending = perPeer.map(() => new Map());
    this.borrowed = perPeer.map(() => []);
  }

  sharesMemoryWith(): boolean {
    return false;
  }

  send(peer: number, tag: number, bytes: Uint8Array): SendHandle {
    this.lane.throwIfBroken();
    const { communicator, timeoutMilliseconds } = this.lane;
    const whenAnswered = this.lane.requests.post({
      kind: "send",
      communicator,
      input: bytes,
      count: bytes.byteLength,
      peer,
      tag,
      limit: this.limit,
      timeoutMilliseconds,
    });
    const message: Sending = { answer: undefined, whenAnswered, tag };
    if (whenAnswered instanceof Promise)
      void whenAnswered.then((answer) => {
        message.answer = answer;
      });
    this.sent[peer]! += 1;
    const count = this.sent[peer]!;
    this.sending[peer]!.set(count, message);
    return { peer, count };
  }

  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array> {
    const bytes = this.memory.take(byteLength);
    return after(this.receiveInto(peer, tag, bytes), () => {
      this.borrowed[peer]!.push(bytes);
      return bytes;
    });
  }

  receiveInto(peer: number, tag: number, target: Uint8Array): Eventually<void> {
    this.lane.throwIfBroken();
    const { communicator, timeoutMilliseconds } = this.lane;
    const answer = this.lane.requests.post({
      kind: "receive",
      communicator,
      output: target,
      count: target.byteLength,
      peer,
      tag,
      limit: this.limit,
      timeoutMilliseconds,
    });
    return after(answer, (given) => this.lane.check(given, { peer, tag, byteLength: target.byteLength }));
  }

  release(peer: number): void {
    const bytes = this.borrowed[peer]!.shift();
    if (bytes === undefined)
      throw new InvariantError(`rank ${this.rank} released a message of rank ${peer} that it did not hold`);
    this.memory.give(bytes);
  }

  whenSent({ peer, count }: SendHandle): Eventually<void> {
    const message = this.sending[peer]!.get(count);
    if (message === undefined) return; // The message already has a response.
    const finish = (answer: Answer): void => {
      this.sending[peer]!.delete(count);
      this.lane.check(answer, { peer, tag: message.tag, byteLength: 0 });
    };
    return message.answer === undefined ? after(message.whenAnswered, finish) : finish(message.answer);
  }
}
