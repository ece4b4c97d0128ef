import type { DeviceArray } from "./backend.ts";
import type { DType } from "../dtype.ts";
import { ArrayStateError } from "../errors.ts";
import { byteLength, formatSpec, type Shape, type TensorSpec } from "../shape.ts";
import { ShownDeviceArray } from "../shown.ts";
import { foreignArray } from "./foreign-array.ts";
import { MemoryReclaimer } from "./memory-reclaimer.ts";

/** An owned block and the bytes of its array; `memory` is `undefined` after the block was given back. */
interface Lease<Memory> {
  memory: Memory | undefined;
  bytes: number;
}

/**
 * Bytes by which live arrays may grow before a run collects garbage: few enough that 16 ranks of one process fit into
 * its 4 GiB, many enough that a collection (a few milliseconds) is rare.
 */
const growthBytes = 128 * 2 ** 20;
/**
 * The same for the number of live arrays: a scalar has 4 bytes, but its block takes 64, and its objects and the record
 * of its finalizer some hundred.
 */
const growthCount = 2 ** 16;

/** The right to a block of device memory. Whoever holds it keeps the memory; when nobody does, it goes back. */
class Holding<Memory> {
  readonly lease: Lease<Memory> = { memory: undefined, bytes: 0 };
}

/** What has become of an array that has ended. */
type Fate = "freed" | "donated" | "lost";

/**
 * - `owned`: the caller's, to read, pass, give away or free.
 * - `lent`: a run reads it, and its memory stays until that has ended. The caller may go on reading it and pass it to
 *   other runs.
 * - `given`: a run may write into it. Nobody else may touch it until that has ended.
 * - `freed`, `donated`: ended by its owner, or by a run that it was given to.
 * - `lost`: given to a run that failed, which may have written half of it.
 */
export type ArrayState = "owned" | "lent" | "given" | Fate;

const refusals: { readonly [state in Fate | "given"]: string } = {
  given:
    "is given away (donated) to a call that has not ended, and may be half overwritten; await that call and use the array that it returns",
  freed: "was freed and cannot be used again; free it later, or upload it again",
  donated:
    "was given away to a compiled function (donated) and cannot be used again; keep the array that the call returned instead",
  lost: "was given away (donated) to a call that failed, which may have overwritten it; go on from values that you have elsewhere, such as the last checkpoint",
};

/** An array in the memory of one backend. */
export class OwnedArray<Memory> extends ShownDeviceArray implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  readonly ledger: ArrayLedger<Memory>;
  private holding: Holding<Memory> | undefined;
  private fate: Fate | undefined;
  private readers = 0;
  private given = false;

  protected override dispose(): void {
    this.ledger.free(this);
  }

  constructor(spec: TensorSpec, holding: Holding<Memory>, ledger: ArrayLedger<Memory>) {
    super();
    this.dtype = spec.dtype;
    this.shape = spec.shape;
    this.bytes = byteLength(spec);
    this.holding = holding;
    this.ledger = ledger;
  }

  get state(): ArrayState {
    return this.fate ?? (this.given ? "given" : this.readers > 0 ? "lent" : "owned");
  }

  /** `DeviceArray f32[2, 3] (owned)` */
  override toString(): string {
    return `${super.toString()} (${this.state})`;
  }

  /** Where the values lie. @throws ArrayStateError once the array has ended, and while a run may write into it. */
  get memory(): Memory {
    const { state } = this;
    if (state !== "owned" && state !== "lent") throw new ArrayStateError(`${formatSpec(this)} ${refusals[state]}`);
    return this.holding!.lease.memory!;
  }

  /**
   * Let a run read it, or with `toWrite` have it.
   *
   * @throws ArrayStateError where that may not be; then nothing has changed.
   */
  lend(toWrite: boolean): Memory {
    const { memory } = this;
    if (!toWrite) this.readers++;
    else if (this.readers === 0) this.given = true;
    else
      throw new ArrayStateError(
        `${formatSpec(this)} is given away (donated), but ${this.readers === 1 ? "a call" : `${this.readers} calls`} that still ${this.readers === 1 ? "reads" : "read"} it; await ${this.readers === 1 ? "that" : "those"} first, or pass a copy`,
      );
    return memory;
  }

  /** Take it back from a run that has not written into it. */
  takeBack(): void {
    if (this.given) this.given = false;
    else this.readers--;
  }

  /** End this array, unless it has ended. */
  end(fate: Fate): void {
    this.fate ??= fate;
  }

  /** Hand out the right to the memory once the array has ended and no run uses it any more. */
  surrender(): Holding<Memory> | undefined {
    if (this.fate === undefined || this.given || this.readers > 0) return undefined;
    const { holding } = this;
    this.holding = undefined;
    return holding;
  }
}

/**
 * Who owns which memory of a backend, and who has borrowed it. Memory goes back when its array has ended and no run
 * uses it. An array that its owner drops without freeing it is freed after the engine has collected it; runs make the
 * engine collect when live arrays have grown by 128 MiB or 65,536 arrays since the last collection.
 *
 * @param release takes a block back.
 */
export class ArrayLedger<Memory> {
  private readonly reclaimer = new MemoryReclaimer();
  private readonly release: (memory: Memory) => void;
  // V8 keeps a record of each registration until the next full collection, so holdings are used again: a training step
  // registers nothing.
  private readonly idle: Holding<Memory>[] = [];
  // Arrays that a failed collective may still read: never collected, so that their memory is not used again.
  private readonly pinned = new Set<OwnedArray<Memory>>();
  private count = 0;
  private bytes = 0;
  /** Smallest count and bytes since the last collection. */
  private readonly floor = { count: 0, bytes: 0 };

  constructor(release: (memory: Memory) => void) {
    this.release = release;
  }

  /** Number of arrays that have memory, and their bytes. Arrays that were dropped count until they are collected. */
  get live(): { readonly count: number; readonly bytes: number } {
    return { count: this.count, bytes: this.bytes };
  }

  /** `12 live arrays hold 96000000 bytes` */
  describeLive(): string {
    return `${this.count} live ${this.count === 1 ? "array holds" : "arrays hold"} ${this.bytes} bytes`;
  }

  /** An array over memory that was allocated from the backend, and belongs to the array from now on. */
  open(spec: TensorSpec, memory: Memory): OwnedArray<Memory> {
    let holding = this.idle.pop();
    if (holding === undefined) {
      holding = new Holding();
      const { lease } = holding;
      this.reclaimer.watch(holding, () => this.end(lease));
    }
    holding.lease.memory = memory;
    holding.lease.bytes = byteLength(spec);
    this.count++;
    this.bytes += holding.lease.bytes;
    return new OwnedArray(spec, holding, this);
  }

  /**
   * Give back the blocks that `blocks` holds when `owner`, such as an executable with its workspace, has been
   * collected. An owner that gives blocks back itself takes them out of the list.
   */
  attach(owner: object, blocks: Memory[]): void {
    const { release } = this;
    this.reclaimer.watch(owner, () => blocks.splice(0).forEach((block) => release(block)));
  }

  /**
   * Collect arrays that were dropped, if live arrays have grown by 128 MiB or 65,536 arrays since the last collection.
   * Called by each run, before it allocates.
   *
   * @returns undefined if there is nothing to wait for.
   */
  relieve(): Promise<void> | undefined {
    return this.hasGrown(1) ? this.reclaim(() => !this.hasGrown(0.5)) : undefined;
  }

  private hasGrown(share: number): boolean {
    const { count, bytes } = this.floor;
    return this.bytes - bytes > share * growthBytes || this.count - count > share * growthCount;
  }

  /**
   * Collect arrays that were dropped.
   *
   * @param isEnough ends the collection early, so that some garbage may be left. Default: all garbage is collected.
   */
  async reclaim(isEnough?: () => boolean): Promise<void> {
    await this.reclaimer.collect(isEnough);
    if (isEnough?.() !== true) Object.assign(this.floor, this.live);
  }

  /** An array of this backend. @throws ArrayStateError for one of another. */
  own(array: DeviceArray): OwnedArray<Memory> {
    if (array instanceof OwnedArray && array.ledger === (this as unknown)) return array as OwnedArray<Memory>;
    throw foreignArray(array);
  }

  /**
   * End an array. Its memory goes back at once, or when the runs that use it have ended. Freeing what has ended does
   * nothing.
   */
  free(array: OwnedArray<Memory>): void {
    array.end("freed");
    this.close(array);
  }

  /** A run has read this array and uses it no more. */
  giveBack(array: OwnedArray<Memory>): void {
    array.takeBack();
    this.close(array);
  }

  /** End an array that a run was given: its memory is of no more use. */
  consume(array: OwnedArray<Memory>): void {
    array.end("donated");
    this.giveBack(array);
  }

  /** End an array that a run was given and has spoilt. */
  lose(array: OwnedArray<Memory>): void {
    array.end("lost");
    this.giveBack(array);
  }

  /**
   * Something beyond our control may use the memory of a lent array for ever: never give it back. An array that was
   * given is lost.
   */
  abandon(array: OwnedArray<Memory>): void {
    if (array.state === "given") array.end("lost");
    this.pinned.add(array);
  }

  /** End an array that a run was given and whose memory lives on in a new one. */
  takeOver(array: OwnedArray<Memory>, spec: TensorSpec): OwnedArray<Memory> {
    array.end("donated");
    array.takeBack();
    const holding = array.surrender()!;
    this.bytes += byteLength(spec) - holding.lease.bytes;
    holding.lease.bytes = byteLength(spec);
    return new OwnedArray(spec, holding, this);
  }

  private close(array: OwnedArray<Memory>): void {
    const holding = array.surrender();
    if (holding === undefined || !this.end(holding.lease)) return;
    this.idle.push(holding);
  }

  /** Give a block back, unless that was done. Returns whether it was given back now. */
  private end(lease: Lease<Memory>): boolean {
    const { memory, bytes } = lease;
    if (memory === undefined) return false;
    lease.memory = undefined;
    this.count--;
    this.bytes -= bytes;
    this.floor.count = Math.min(this.floor.count, this.count);
    this.floor.bytes = Math.min(this.floor.bytes, this.bytes);
    this.release(memory);
    return true;
  }
}
