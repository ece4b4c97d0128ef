import { dtypes, type Reduction } from "@skein/tensor-core";
import type { CollectiveRequest, WasmMemory } from "@skein/tensor-core/backend";
import type { Arithmetic } from "../arithmetic.ts";
import type { ControlBlock } from "../control-block/control-block.ts";
import { channelWord, exchangeWord, laneCount } from "../control-block/layout.ts";
import type { NativeCollectives } from "./native-collectives.ts";
import { type Eventually, Future } from "./transport.ts";

export interface ThreadExchangeParts {
  readonly control: ControlBlock;
  readonly memory: WasmMemory;
  readonly arithmetic: Arithmetic;
  /** Byte offset, in the shared memory, of the exchange parts of all ranks, as returned by `reserveParts`. */
  readonly parts: number;
}

/**
 * Maximum number of bytes that a rank reads from other ranks. For larger requests, algorithms that read each byte only
 * one time are faster.
 */
const maxReadBytes = 16_384;

const reductions: readonly (Reduction | undefined)[] = ["sum", "max", "min", undefined];

/**
 * Returns the size of the memory of one part, in bytes: the maximum number of bytes that a rank reads from each other
 * rank, rounded up to whole cache lines. A part is the operand of one rank in an exchange.
 */
const partBytes = (worldSize: number): number => Math.ceil(maxReadBytes / (worldSize - 1) / 64) * 64;

/**
 * Allocates memory for the parts of all ranks, which are their operands in exchanges: two parts per rank and lane. Call
 * this function before the ranks start, so that all ranks know whether the memory exists.
 *
 * @returns byte offset of the parts. Undefined if there is only one rank, or if the memory cannot grow. In the latter
 * case, small collectives use schedules, like large collectives.
 */
export const reserveParts = (memory: WasmMemory, worldSize: number): number | undefined => {
  if (worldSize === 1) return undefined;
  try {
    return 65_536 * memory.grow(Math.ceil((laneCount * worldSize * 2 * partBytes(worldSize)) / 65_536));
  } catch {
    return undefined;
  }
};

/**
 * Encodes dtype, reduction and root of a request as one number, because requests of equal kind and size may differ in
 * these fields.
 */
const meaningOf = ({ kind, dtype, reduction = "sum", root = 0 }: CollectiveRequest): number =>
  ((kind === "reduce" ? root : 0) * dtypes.length + dtypes.indexOf(dtype)) * reductions.length +
  reductions.indexOf(reduction);

/** Describes a dtype, reduction and root encoded by `meaningOf`, for messages. */
const describeMeaning = (meaning: number): string => {
  const typeAndRoot = Math.floor(meaning / reductions.length);
  const root = Math.floor(typeAndRoot / dtypes.length);
  const what = `${reductions[meaning % reductions.length]} of ${dtypes[typeAndRoot % dtypes.length]}`;
  return root === 0 ? what : `${what} at rank ${root}`;
};

/**
 * Indices of the control-block words for exchanges on one lane, cached because computing the indices takes as long as
 * reading the words.
 */
interface ExchangeWords {
  readonly own: number;
  /**
   * Other ranks, with their word indices. `exchange`: index of the first word of the rank's exchange state. `channel`:
   * index of the first word of the channel from the other rank to this rank.
   */
  readonly peers: readonly { readonly rank: number; readonly exchange: number; readonly channel: number }[];
  readonly lane: number;
}

/** A started exchange, for which this rank has published its part. */
interface StartedExchange {
  readonly request: CollectiveRequest;
  readonly laneWords: ExchangeWords;
  readonly tag: number;
  readonly meaning: number;
  /** Sequence number of the exchange on its lane. */
  readonly sequence: number;
}

/**
 * Small collectives of all ranks of one process. Each rank copies its part to separate memory, publishes the part, and
 * reads the parts of all other ranks (for a reduce, only the root does). A rank waits only one time. With a schedule, a
 * rank would lend its input to other ranks, and wait a second time until they have released the input.
 *
 * The memory of a part is reused two exchanges later. By then every rank has published its part of the exchange in
 * between, so every rank has finished reading the earlier part. Sums are in rank order.
 *
 * Cost: (P − 1) · S bytes read per rank, S copied; two cache lines (64 bytes) per peer.
 */
export class ThreadExchange implements NativeCollectives {
  readonly name = "exchange";
  readonly rankOrder = true;
  readonly schedulesUpTo = -1;
  private readonly control: ControlBlock;
  private readonly memory: WasmMemory;
  private readonly arithmetic: Arithmetic;
  private readonly parts: number;
  /** Word indices of each lane; undefined until the lane is used. */
  private readonly laneWords: (ExchangeWords | undefined)[] = [];
  /** Cached views of the exchange memory by address: the last used view at each address. */
  private readonly regions = new Map<number, Uint8Array>();

  constructor({ control, memory, arithmetic, parts }: ThreadExchangeParts) {
    this.control = control;
    this.memory = memory;
    this.arithmetic = arithmetic;
    this.parts = parts;
  }

  covers({ kind, input, ragged }: CollectiveRequest): boolean {
    const others = this.control.worldSize - 1;
    if (ragged !== undefined || others === 0 || others * input.byteLength > maxReadBytes) return false;
    return kind === "all-reduce" || kind === "reduce" || kind === "all-gather" || kind === "barrier";
  }

  bytesSent({ kind, input, root = 0 }: CollectiveRequest): number {
    if (kind === "reduce") return this.control.rank === root ? 0 : input.byteLength;
    return (this.control.worldSize - 1) * input.byteLength;
  }

  run(request: CollectiveRequest, lane: number, tag: number): Eventually<void> {
    const laneWords = (this.laneWords[lane] ??= this.laneWordsOf(lane));
    const meaning = meaningOf(request);
    const started: StartedExchange = {
      request,
      laneWords,
      tag,
      meaning,
      sequence: this.publish(request, laneWords, tag, meaning),
    };
    const { sequence } = started;
    const { words } = this.control;
    const { peers } = laneWords;
    /** Number of consecutive peers, from the first of `peers`, that are known to have published their part. */
    let numPublished = 0;
    const haveAllPublished = (): boolean => {
      for (; numPublished < peers.length; numPublished++)
        if (((Atomics.load(words, peers[numPublished]!.exchange + exchangeWord.shown) - sequence) | 0) < 0)
          return false;
      return true;
    };
    if (haveAllPublished() || this.control.isSoon(haveAllPublished, "message")) return this.finish(started);
    /** Whether the first peer that has not joined this exchange has sent a message of another collective. */
    const hasSentOther = (): boolean => {
      const { channel } = peers[numPublished]!;
      return Atomics.load(words, channel + channelWord.sent) !== Atomics.load(words, channel + channelWord.returned);
    };
    return new Future<void>(
      () => haveAllPublished() || hasSentOther(),
      () => {
        if (!haveAllPublished())
          this.disagree(peers[numPublished]!.rank, started, "sent a message of another collective");
        this.finish(started);
      },
      () => {
        this.control.failTimeout(peers[numPublished]!.rank, tag);
        throw this.control.failure(tag)!;
      },
    );
  }

  private laneWordsOf(lane: number): ExchangeWords {
    const { control } = this;
    const { rank, worldSize } = control;
    return {
      lane,
      own: control.exchangeAt(lane, rank),
      peers: Array.from({ length: worldSize }, (_, peer) => ({
        rank: peer,
        exchange: control.exchangeAt(lane, peer),
        channel: control.channelAt(lane, peer, rank),
      })).filter((peer) => peer.rank !== rank),
    };
  }

  /**
   * Copies this rank's input to the memory of its part, and publishes the part.
   *
   * @returns sequence number of the exchange on its lane.
   */
  private publish(
    request: CollectiveRequest,
    { own, peers, lane }: ExchangeWords,
    tag: number,
    meaning: number,
  ): number {
    const { words } = this.control;
    const { input } = request;
    const sequence = (Atomics.load(words, own + exchangeWord.shown) + 1) | 0;
    if (input.byteLength > 0)
      this.arithmetic.copy(this.partAt(lane, this.control.rank, sequence, input.byteLength), input);
    const at = own + exchangeWord.parts + (sequence & 1) * exchangeWord.ofPart;
    words[at + exchangeWord.bytes] = input.byteLength;
    words[at + exchangeWord.tag] = tag;
    words[at + exchangeWord.meaning] = meaning;
    Atomics.store(words, own + exchangeWord.shown, sequence); // Also publishes all earlier writes.
    for (const { rank } of peers) this.control.wake(rank, "message");
    return sequence;
  }

  private finish(started: StartedExchange): void {
    const { input, output, dtype, reduction = "sum", kind, root = 0 } = started.request;
    const { rank } = this.control;
    const parts: Uint8Array[] = [];
    for (const peer of started.laneWords.peers) {
      if (parts.length === rank) parts.push(input);
      parts.push(this.partOf(peer, started));
    }
    if (parts.length === rank) parts.push(input);
    if (input.byteLength === 0) return;
    if (kind === "reduce" && rank !== root) return void output.fill(0);
    if (kind !== "all-gather") return this.arithmetic.combine(dtype, reduction, [output], parts);
    for (const [i, part] of parts.entries())
      this.arithmetic.copy(output.subarray(i * input.byteLength, (i + 1) * input.byteLength), part);
  }

  private partOf({ rank, exchange }: ExchangeWords["peers"][number], started: StartedExchange): Uint8Array {
    const { request, tag, meaning, sequence, laneWords } = started;
    const { words } = this.control;
    const { byteLength } = request.input;
    const at = exchange + exchangeWord.parts + (sequence & 1) * exchangeWord.ofPart;
    if (
      words[at + exchangeWord.tag] !== tag ||
      words[at + exchangeWord.bytes] !== byteLength ||
      words[at + exchangeWord.meaning] !== meaning
    )
      this.disagree(rank, started, described(words, at, this.control));
    return this.partAt(laneWords.lane, rank, sequence, byteLength);
  }

  /** Returns the first `byteLength` bytes of a rank's part. Even and odd exchanges have separate memory. */
  private partAt(lane: number, rank: number, sequence: number, byteLength: number): Uint8Array {
    const { worldSize } = this.control;
    const address = this.parts + ((lane * worldSize + rank) * 2 + (sequence & 1)) * partBytes(worldSize);
    const known = this.regions.get(address);
    if (known?.byteLength === byteLength) return known;
    // A thread may still see the old buffer after another thread grew the memory.
    if (this.memory.buffer.byteLength < address + byteLength) this.memory.grow(0);
    const region = new Uint8Array(this.memory.buffer, address, byteLength);
    this.regions.set(address, region);
    return region;
  }

  private disagree(peer: number, started: StartedExchange, difference: string): never {
    const { control } = this;
    control.failDisagree(
      peer,
      started.tag,
      `rank ${peer} ${difference}, but rank ${control.rank} expected ${expected(started, control)}`,
    );
    throw control.failure(started.tag)!;
  }
}

const expected = ({ request: { input }, tag, meaning }: StartedExchange, control: ControlBlock): string =>
  `${input.byteLength} bytes for ${control.nameOf(tag)} (${describeMeaning(meaning)})`;

const described = (words: Int32Array, at: number, control: ControlBlock): string => {
  const meaning = describeMeaning(words[at + exchangeWord.meaning]!);
  return `sent ${words[at + exchangeWord.bytes]!} bytes for ${control.nameOf(words[at + exchangeWord.tag]!)} (${meaning})`;
};
