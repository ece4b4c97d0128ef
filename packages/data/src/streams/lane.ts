import { permutation, randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { epochOrder } from "../order.ts";
import { shardBegin, type ShardPosition, type ShardReader } from "./shard-position.ts";

/**
 * Position of a lane: beginning of the current block, and number of samples already drawn from the block. Plain data
 * that is stored in checkpoints.
 */
export interface LanePosition extends ShardPosition {
  /** Ordinal of the shard in which the block begins, counted over successive passes over all shards. */
  readonly shard: number;
  /** Number of blocks of the lane before the current block. */
  readonly block: number;
  /** Number of samples in the current block. */
  readonly size: number;
  readonly drawn: number;
}

/** Options common to all lanes of a stream. */
export interface LaneOptions {
  readonly seed: number;
  readonly numShards: number;
  readonly numLanes: number;
  /** Number of samples that are shuffled together in each lane. */
  readonly blockSize: number;
}

/** A sample drawn from a block. */
export interface Drawn<Of> {
  readonly sample: Of;
  /** All samples of the block in shard order, and the index of this sample in `block`. */
  readonly block: readonly Of[];
  readonly index: number;
  /** Number of samples of the lane that precede this sample in shard order. */
  readonly ordinal: number;
}

interface Block<Of> {
  readonly start: LanePosition;
  readonly samples: readonly Of[];
  /** Indices of the block's samples, in drawing order. */
  readonly order: Int32Array;
}

/**
 * Value folded into the seed's key to get the random stream for shuffles within blocks. Shuffles of shards use another
 * value.
 */
const blockStream = 0xb10c;

const blockOrder = (seed: number, lane: number, block: number, size: number): Int32Array =>
  permutation(foldInKey(foldInKey(foldInKey(randomKey(seed).data, blockStream), lane), block), size);

/**
 * Returns a function that converts a shard's ordinal, counted over all passes, to its index. Each pass visits the
 * shards in a different random order.
 */
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
  readonly position: ShardPosition;
}

/**
 * A lane of a stream: an endless sequence of samples, read independently of other lanes. Shards are numbered
 * consecutively over all passes. Lane l of L reads the shards with numbers l, l + L, l + 2 L, …, and shuffles one block
 * of samples at a time. The next block is read while samples are drawn from the current block, so two blocks are in
 * memory. The sequence depends only on the options and the shards.
 */
export class Lane<Of> {
  private readonly read: ShardReader<Of>;
  private readonly lane: number;
  private readonly options: LaneOptions;
  private readonly samples: AsyncGenerator<Placed<Of>, never>;
  private current: Promise<Block<Of>>;
  private nextBlock: Promise<Block<Of>>;
  private drawn: number;
  private last: Promise<unknown> = Promise.resolve();
  private numReading = 0;

  /**
   * Creates a lane, and starts to read its first blocks.
   *
   * @param position Position from which to resume. Default: the beginning.
   */
  constructor(read: ShardReader<Of>, lane: number, options: LaneOptions, position?: LanePosition) {
    this.read = read;
    this.lane = lane;
    this.options = options;
    this.samples = this.eachSample(position ?? { ...shardBegin, shard: lane });
    this.drawn = position?.drawn ?? 0;
    this.current = this.begin(Promise.resolve(), position?.block ?? 0, position?.size ?? options.blockSize);
    this.nextBlock = this.begin(this.current, (position?.block ?? 0) + 1, options.blockSize);
  }

  /** Resolves when the pending read ends. Undefined: no read is pending. */
  get reading(): Promise<unknown> | undefined {
    if (this.numReading === 0) return undefined;
    return (this.numReading === 2 ? this.current : this.nextBlock).catch(() => undefined);
  }

  /**
   * Returns the next samples, and the position of the lane after them. Calls are served in order.
   *
   * @throws DataError if one of the samples cannot be read; later calls throw the same error.
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
        this.current = this.nextBlock;
        this.nextBlock = this.begin(this.current, block.start.block + 2, this.options.blockSize);
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

  /** Reads a block after the previous block has been read. */
  private begin(before: Promise<unknown>, block: number, size: number): Promise<Block<Of>> {
    this.numReading++;
    const reading = before
      .then(() => this.readBlock(block, size))
      .finally(() => {
        this.numReading--;
      });
    reading.catch(() => undefined); // the caller of `draw` receives the error
    return reading;
  }

  private async readBlock(block: number, size: number): Promise<Block<Of>> {
    const samples: Of[] = [];
    let start: LanePosition | undefined;
    while (samples.length < size) {
      const { sample, shard, position } = (await this.samples.next()).value;
      start ??= { ...position, shard, block, size, drawn: 0 };
      samples.push(sample);
    }
    return { start: start!, samples, order: blockOrder(this.options.seed, this.lane, block, size) };
  }

  private async *eachSample(from: ShardPosition & { readonly shard: number }): AsyncGenerator<Placed<Of>, never> {
    const { seed, numShards, numLanes } = this.options;
    const at = shardAt(seed, numShards);
    let position: ShardPosition = { offset: from.offset, skip: from.skip };
    const empty = new Set<number>();
    for (let shard = from.shard; empty.size < numShards; shard += numLanes) {
      // A shard that is read from the middle may have no further samples without being empty.
      if (position.offset === 0 && position.skip === 0) empty.add(at(shard));
      for await (const found of this.read(at(shard), position)) {
        empty.clear();
        yield { ...found, shard };
      }
      position = shardBegin;
    }
    throw new DataError(
      `none of the ${numShards} shards of the stream has a usable sample; give other shards, or check why samples are skipped`,
    );
  }
}
