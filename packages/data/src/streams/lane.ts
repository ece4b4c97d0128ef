import { permutation, randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { epochOrder } from "../order.ts";
import { shardBegin, type ShardPlace, type ShardReader } from "./shard-place.ts";

/**
 * Where a lane stands: how many of the samples of a block were drawn, and where that block begins. Plain data; goes
 * into checkpoints.
 */
export interface LanePosition extends ShardPlace {
  /** The shard in which the block begins: how many come before it where passes over all shards follow each other. */
  readonly shard: number;
  /** How many blocks come before it. */
  readonly block: number;
  /** Samples of the block. */
  readonly size: number;
  readonly drawn: number;
}

/** What all lanes of a stream have alike. */
export interface LaneOptions {
  readonly seed: number;
  readonly numShards: number;
  readonly numLanes: number;
  /** Samples that are shuffled together in each lane. */
  readonly blockSize: number;
}

/** A sample that was drawn. */
export interface Drawn<Of> {
  readonly sample: Of;
  /** The samples that it was shuffled with, in the order of their shards, and which of them it is. */
  readonly block: readonly Of[];
  readonly index: number;
  /** How many samples of the lane come before its own in the order of shards. */
  readonly ordinal: number;
}

interface Block<Of> {
  readonly start: LanePosition;
  readonly samples: readonly Of[];
  /** Which of them is drawn when. */
  readonly order: Int32Array;
}

/** The stream of shuffles within blocks under a seed, apart from that of shards. */
const blockStream = 0xb10c;

const blockOrder = (seed: number, lane: number, block: number, size: number): Int32Array =>
  permutation(foldInKey(foldInKey(foldInKey(randomKey(seed).data, blockStream), lane), block), size);

/** The shard that stands at a place of all passes over the shards, each in an order of its own. */
const shardAt = (seed: number, numShards: number): ((ordinal: number) => number) => {
  let known: { readonly epoch: number; readonly order: Int32Array } | undefined;
  return (ordinal) => {
    const epoch = Math.floor(ordinal / numShards);
    if (known?.epoch !== epoch) known = { epoch, order: epochOrder(seed, epoch, numShards) };
    return known.order[ordinal % numShards]!;
  };
};

interface Placed<Of> {
  readonly sample: Of;
  readonly shard: number;
  readonly place: ShardPlace;
}

/**
 * An endless row of samples: lane l of L reads shards l, l + L, l + 2 L, … of the passes over all shards, and a block
 * of them is shuffled at a time. While a block is drawn from, the next one is read, so that twice its size stays in
 * memory. What is drawn follows from the options and the shards alone.
 */
export class Lane<Of> {
  private readonly read: ShardReader<Of>;
  private readonly lane: number;
  private readonly options: LaneOptions;
  private readonly samples: AsyncGenerator<Placed<Of>, never>;
  private current: Promise<Block<Of>>;
  private coming: Promise<Block<Of>>;
  private drawn: number;
  private last: Promise<unknown> = Promise.resolve();
  private numReading = 0;

  /** @param position where to go on. Default: at the beginning. */
  constructor(read: ShardReader<Of>, lane: number, options: LaneOptions, position?: LanePosition) {
    this.read = read;
    this.lane = lane;
    this.options = options;
    this.samples = this.eachSample(position ?? { ...shardBegin, shard: lane });
    this.drawn = position?.drawn ?? 0;
    this.current = this.begin(Promise.resolve(), position?.block ?? 0, position?.size ?? options.blockSize);
    this.coming = this.begin(this.current, (position?.block ?? 0) + 1, options.blockSize);
  }

  /** What is read at the moment, where something is. */
  get reading(): Promise<unknown> | undefined {
    if (this.numReading === 0) return undefined;
    return (this.numReading === 2 ? this.current : this.coming).catch(() => undefined);
  }

  /**
   * The next samples, and where the lane stands behind them. Calls are answered in their order.
   *
   * @throws DataError where one of them cannot be read, as all that come after it.
   */
  draw(count: number): Promise<{ readonly samples: readonly Drawn<Of>[]; readonly position: LanePosition }> {
    const drawing = this.last.then(() => this.drawNext(count));
    this.last = drawing.catch(() => undefined);
    return drawing;
  }

  private async drawNext(
    count: number,
  ): Promise<{ readonly samples: readonly Drawn<Of>[]; readonly position: LanePosition }> {
    const samples: Drawn<Of>[] = [];
    let block = await this.current;
    while (samples.length < count) {
      if (this.drawn === block.samples.length) {
        this.current = this.coming;
        this.coming = this.begin(this.current, block.start.block + 2, this.options.blockSize);
        this.drawn = 0;
        block = await this.current;
        continue;
      }
      const index = block.order[this.drawn++]!;
      const ordinal = block.start.block * this.options.blockSize + index;
      samples.push({ sample: block.samples[index]!, block: block.samples, index, ordinal });
    }
    return { samples, position: { ...block.start, drawn: this.drawn } };
  }

  /** Read a block once the one before it is there. */
  private begin(before: Promise<unknown>, block: number, size: number): Promise<Block<Of>> {
    this.numReading++;
    const reading = before
      .then(() => this.readBlock(block, size))
      .finally(() => {
        this.numReading--;
      });
    reading.catch(() => undefined); // told to who draws from it
    return reading;
  }

  private async readBlock(block: number, size: number): Promise<Block<Of>> {
    const samples: Of[] = [];
    let start: LanePosition | undefined;
    while (samples.length < size) {
      const { sample, shard, place } = (await this.samples.next()).value;
      start ??= { ...place, shard, block, size, drawn: 0 };
      samples.push(sample);
    }
    return { start: start!, samples, order: blockOrder(this.options.seed, this.lane, block, size) };
  }

  private async *eachSample(from: ShardPlace & { readonly shard: number }): AsyncGenerator<Placed<Of>, never> {
    const { seed, numShards, numLanes } = this.options;
    const at = shardAt(seed, numShards);
    let place: ShardPlace = { offset: from.offset, skip: from.skip };
    const empty = new Set<number>();
    for (let shard = from.shard; empty.size < numShards; shard += numLanes) {
      // The rest of one that the lane begins in says nothing of the whole.
      if (place.offset === 0 && place.skip === 0) empty.add(at(shard));
      for await (const found of this.read(at(shard), place)) {
        empty.clear();
        yield { ...found, shard };
      }
      place = shardBegin;
    }
    throw new DataError(
      `none of the ${numShards} shards of the stream has a sample that can be used; name others, or see what is left out of them`,
    );
  }
}
