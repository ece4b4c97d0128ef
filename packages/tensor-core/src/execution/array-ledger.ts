import type { DeviceArray } from "./backend.ts";
import type { DType } from "../dtype.ts";
import { ArrayStateError } from "../errors.ts";
import { byteLength, formatSpec, type Shape, type TensorSpec } from "../shape.ts";
import { PrintableDeviceArray } from "../printable.ts";
import { foreignArray } from "./foreign-array.ts";
import { MemoryReclaimer } from "./memory-reclaimer.ts";

/** An owned block and the byte size of its array; `memory` is `undefined` after the block was released. */
interface Lease<Memory> {
  memory: Memory | undefined;
  bytes: number;
}

/**
 * Bytes by which live arrays may grow before a run collects garbage: small enough that 16 ranks of one process fit into
 * its 4 GiB, large enough that a collection (a few milliseconds) is rare.
 */
const growthBytes = 128 * 2 ** 20;
/**
 * Number of arrays by which live arrays may grow before a run collects garbage: a scalar has 4 bytes, but its block
 * takes 64, and its objects and finalizer record some hundred.
 */
const growthCount = 2 ** 16;

/**
 * Ownership of a block of device memory. The memory is kept as long as an object refers to the holding; otherwise it is
 * released.
 */
class Holding<Memory> {
  readonly lease: Lease<Memory> = { memory: undefined, bytes: 0 };
}

/** Reason why an array has ended. */
type Fate = "freed" | "donated" | "lost";

/**
 * - `owned`: belongs to the caller, who may read, pass, donate or free the array.
 * - `lent`: a run reads the array, and its memory stays until the run has ended. The caller may still read the array
 *   and pass it to other runs.
 * - `given`: donated to a run, which may write into the array. Nobody else may use it until the run has ended.
 * - `freed`, `donated`: ended by its owner, or by the run that it was donated to.
 * - `lost`: donated to a run that failed and may have overwritten a part of it.
 */
export type ArrayState = "owned" | "lent" | "given" | Fate;

const refusals: { readonly [state in Fate | "given"]: string } = {
  given:
    "is given away (donated) to a call that has not ended, and may be partly overwritten; await that call and use the array that it returns",
  freed: "was freed and cannot be used again; free it later, or upload it again",
  donated:
    "was given away to a compiled function (donated) and cannot be used again; keep the array that the call returned instead",
  lost: "was given away (donated) to a call that failed, which may have overwritten it; continue from values that you have elsewhere, such as the last checkpoint",
};

/** An array in the memory of one backend. */
export class OwnedArray<Memory> extends PrintableDeviceArray implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  readonly ledger: ArrayLedger<Memory>;
  private holding: Holding<Memory> | undefined;
  private fate: Fate | undefined;
  private readers = 0;
  private isDonated = false;

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
    return this.fate ?? (this.isDonated ? "given" : this.readers > 0 ? "lent" : "owned");
  }

  /** `DeviceArray f32[2, 3] (owned)` */
  override toString(): string {
    return `${super.toString()} (${this.state})`;
  }

  /** Memory of the values. @throws ArrayStateError after the array has ended, and while a run may write into it. */
  get memory(): Memory {
    const { state } = this;
    if (state !== "owned" && state !== "lent") throw new ArrayStateError(`${formatSpec(this)} ${refusals[state]}`);
    return this.holding!.lease.memory!;
  }

  /**
   * Lend the array to a run for reading, or with `toWrite` donate it.
   *
   * @throws ArrayStateError if this is not allowed; then nothing has changed.
   */
  lend(toWrite: boolean): Memory {
    const { memory } = this;
    if (!toWrite) this.readers++;
    else if (this.readers === 0) this.isDonated = true;
    else
      throw new ArrayStateError(
        `${formatSpec(this)} is given away (donated), but ${this.readers === 1 ? "a call still reads" : `${this.readers} calls still read`} it; await ${this.readers === 1 ? "that" : "those"} first, or pass a copy`,
      );
    return memory;
  }

  /** Return the array from a run that has not written into it. */
  takeBack(): void {
    if (this.isDonated) this.isDonated = false;
    else this.readers--;
  }

  /** End this array, unless it has already ended. */
  end(fate: Fate): void {
    this.fate ??= fate;
  }

  /** Hand over the holding once the array has ended and no run uses it any more; undefined before that. */
  surrender(): Holding<Memory> | undefined {
    if (this.fate === undefined || this.isDonated || this.readers > 0) return undefined;
    const { holding } = this;
    this.holding = undefined;
    return holding;
  }
}

/**
 * Records which array owns which memory of a backend, and which runs have borrowed it. Memory is released when its
 * array has ended and no run uses it. An array that the program drops without freeing it is freed after the engine has
 * collected it; runs trigger a collection when live arrays have grown by 128 MiB or 65,536 arrays since the last
 * collection.
 *
 * @param release releases a block.
 */
export class ArrayLedger<Memory> {
  private readonly reclaimer = new MemoryReclaimer();
  private readonly release: (memory: Memory) => void;
  // V8 keeps a record of each registration until the next full collection, so holdings are reused: a training step
  // registers nothing.
  private readonly idle: Holding<Memory>[] = [];
  // Arrays that a failed collective may still read: never collected, so that their memory is not reused.
  private readonly pinned = new Set<OwnedArray<Memory>>();
  private count = 0;
  private bytes = 0;
  /** Smallest count and bytes since the last collection. */
  private readonly floor = { count: 0, bytes: 0 };

  constructor(release: (memory: Memory) => void) {
    this.release = release;
  }

  /** Number of arrays that have memory, and their bytes. Dropped arrays count until they are collected. */
  get live(): { readonly count: number; readonly bytes: number } {
    return { count: this.count, bytes: this.bytes };
  }

  /** `12 live arrays hold 96000000 bytes` */
  describeLive(): string {
    return `${this.count} live ${this.count === 1 ? "array holds" : "arrays hold"} ${this.bytes} bytes`;
  }

  /** Create an array that owns memory allocated from the backend. */
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
   * Release the blocks in `blocks` when `owner`, such as an executable with its workspace, has been collected. An owner
   * that releases blocks itself removes them from the list.
   */
  attach(owner: object, blocks: Memory[]): void {
    const { release } = this;
    this.reclaimer.watch(owner, () => blocks.splice(0).forEach((block) => release(block)));
  }

  /**
   * Collect dropped arrays, if live arrays have grown by 128 MiB or 65,536 arrays since the last collection. Called by
   * each run, before it allocates.
   *
   * @returns undefined if there is nothing to wait for.
   */
  reclaimIfGrown(): Promise<void> | undefined {
    return this.hasGrown(1) ? this.reclaim(() => !this.hasGrown(0.5)) : undefined;
  }

  private hasGrown(share: number): boolean {
    const { count, bytes } = this.floor;
    return this.bytes - bytes > share * growthBytes || this.count - count > share * growthCount;
  }

  /**
   * Collect dropped arrays.
   *
   * @param isEnough stops the collection early, so that some garbage may be left. Default: all garbage is collected.
   */
  async reclaim(isEnough?: () => boolean): Promise<void> {
    await this.reclaimer.collect(isEnough);
    if (isEnough?.() !== true) Object.assign(this.floor, this.live);
  }

  /** Check that an array belongs to this backend. @throws ArrayStateError otherwise. */
  own(array: DeviceArray): OwnedArray<Memory> {
    if (array instanceof OwnedArray && array.ledger === (this as unknown)) return array as OwnedArray<Memory>;
    throw foreignArray(array);
  }

  /**
   * End an array. Its memory is released at once, or when the runs that use it have ended. Freeing an ended array has
   * no effect.
   */
  free(array: OwnedArray<Memory>): void {
    array.end("freed");
    this.close(array);
  }

  /** Return an array that a run has finished reading. */
  giveBack(array: OwnedArray<Memory>): void {
    array.takeBack();
    this.close(array);
  }

  /** End an array that was donated to a run and whose memory is no longer needed. */
  consume(array: OwnedArray<Memory>): void {
    array.end("donated");
    this.giveBack(array);
  }

  /** End an array that was donated to a failed run. */
  lose(array: OwnedArray<Memory>): void {
    array.end("lost");
    this.giveBack(array);
  }

  /**
   * Never release the memory of a lent array, because code outside our control may still use it. A donated array is
   * lost.
   */
  abandon(array: OwnedArray<Memory>): void {
    if (array.state === "given") array.end("lost");
    this.pinned.add(array);
  }

  /** End an array that was donated to a run and whose memory continues in a new array. */
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

  /** Release a block, unless it was released before. Returns whether it was released now. */
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
