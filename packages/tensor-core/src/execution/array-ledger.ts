import type { DeviceArray } from "./backend.ts";
import type { DType } from "../dtype.ts";
import { ArrayStateError } from "../errors.ts";
import { byteLength, formatSpec, type Shape, type TensorSpec } from "../shape.ts";
import { PrintableDeviceArray } from "../printable.ts";
import { foreignArray } from "./foreign-array.ts";
import { MemoryReclaimer } from "./memory-reclaimer.ts";

/** Memory block and the byte size of the array that owns it. `memory` is `undefined` after the block was released. */
interface Lease<Memory> {
  memory: Memory | undefined;
  bytes: number;
}

/**
 * Growth of live arrays, in bytes, after which a run triggers garbage collection. A small value limits memory: 16 ranks
 * in one process need at most 4 GiB. A large value makes collections, which take a few milliseconds, rare.
 */
const growthBytes = 128 * 2 ** 20;
/**
 * Growth of the number of live arrays after which a run triggers garbage collection. Needed for small arrays: a scalar
 * has 4 bytes, but its block takes 64 bytes, and its objects and finalizer record take several hundred.
 */
const growthCount = 2 ** 16;

/** Owner of a block of device memory. The memory is released after this object has been garbage-collected. */
class Holding<Memory> {
  readonly lease: Lease<Memory> = { memory: undefined, bytes: 0 };
}

/** Reason why an array can no longer be used. */
type Fate = "freed" | "donated" | "lost";

/**
 * State of a device array.
 * - `owned`: the caller may read, pass, donate or free the array.
 * - `lent`: a run reads the array. The memory is kept until the run ends. The caller may read the array and pass it to
 *   other runs.
 * - `given`: donated to a run, which may write into the array. No other code may use the array until the run ends.
 * - `freed`: freed by the caller. `donated`: consumed by the run to which it was donated.
 * - `lost`: donated to a run that failed and may have overwritten a part of the array.
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

/** Device array in the memory of one backend. */
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

  /** Formats as `DeviceArray f32[2, 3] (owned)`. */
  override toString(): string {
    return `${super.toString()} (${this.state})`;
  }

  /**
   * Memory of the array. Throws ArrayStateError if the array was freed, donated or lost, or while a run may write into
   * the array.
   */
  get memory(): Memory {
    const { state } = this;
    if (state !== "owned" && state !== "lent") throw new ArrayStateError(`${formatSpec(this)} ${refusals[state]}`);
    return this.holding!.lease.memory!;
  }

  /**
   * Lends the array to a run for reading, or donates the array if `toWrite` is true. Returns the memory.
   *
   * @throws ArrayStateError if the state does not allow lending. The state is then unchanged.
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

  /** Ends a loan to a run that has not written into the array, so that the caller owns the array again. */
  takeBack(): void {
    if (this.isDonated) this.isDonated = false;
    else this.readers--;
  }

  /** Sets the final state of the array, unless it is already freed, donated or lost. */
  end(fate: Fate): void {
    this.fate ??= fate;
  }

  /**
   * Gives up the memory of a freed, donated or lost array that no run uses. Returns the owner of the memory. Undefined
   * if the array keeps its memory.
   */
  surrender(): Holding<Memory> | undefined {
    if (this.fate === undefined || this.isDonated || this.readers > 0) return undefined;
    const { holding } = this;
    this.holding = undefined;
    return holding;
  }
}

/**
 * Records the owner of each memory block of a backend, and the runs that use it. Memory is released when its array has
 * been freed or donated and no run uses it. If an array becomes unreachable without being freed, it is freed after
 * garbage collection. Runs trigger a collection when live arrays have grown by 128 MiB or 65,536 arrays since the last
 * collection.
 *
 * @param release Releases a memory block of the backend.
 */
export class ArrayLedger<Memory> {
  private readonly reclaimer = new MemoryReclaimer();
  private readonly release: (memory: Memory) => void;
  // Unused holdings, which are reused. V8 keeps a record of each finalizer registration until the next full collection;
  // with reuse, a training step makes no registrations.
  private readonly idle: Holding<Memory>[] = [];
  // Arrays that a failed collective may still access. Referenced here forever, so that their memory is not reused.
  private readonly pinned = new Set<OwnedArray<Memory>>();
  private count = 0;
  private bytes = 0;
  /** Minimum number of live arrays, and minimum number of their bytes, since the last collection. */
  private readonly floor = { count: 0, bytes: 0 };

  constructor(release: (memory: Memory) => void) {
    this.release = release;
  }

  /**
   * Number of arrays that own memory, and their total bytes. Includes unreachable arrays that are not collected yet.
   */
  get live(): { readonly count: number; readonly bytes: number } {
    return { count: this.count, bytes: this.bytes };
  }

  /** Describes `live` for messages: `12 live arrays hold 96000000 bytes`. */
  describeLive(): string {
    return `${this.count} live ${this.count === 1 ? "array holds" : "arrays hold"} ${this.bytes} bytes`;
  }

  /** Creates an array that owns `memory`, a block allocated from the backend. */
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
   * Releases the memory blocks in `blocks` after `owner`, such as an executable with its workspace, has been
   * garbage-collected. An owner that releases a block earlier must remove it from the list.
   */
  attach(owner: object, blocks: Memory[]): void {
    const { release } = this;
    this.reclaimer.watch(owner, () => blocks.splice(0).forEach((block) => release(block)));
  }

  /**
   * Collects unreachable arrays if live arrays have grown by 128 MiB or 65,536 arrays since the last collection. Called
   * by each run before it allocates memory.
   *
   * @returns A promise of the collection; undefined if no collection is needed.
   */
  reclaimIfGrown(): Promise<void> | undefined {
    return this.hasGrown(1) ? this.reclaim(() => !this.hasGrown(0.5)) : undefined;
  }

  private hasGrown(share: number): boolean {
    const { count, bytes } = this.floor;
    return this.bytes - bytes > share * growthBytes || this.count - count > share * growthCount;
  }

  /**
   * Collects unreachable arrays.
   *
   * @param isEnough Returns whether to stop the collection early. Default: collect all unreachable arrays.
   */
  async reclaim(isEnough?: () => boolean): Promise<void> {
    await this.reclaimer.collect(isEnough);
    if (isEnough?.() !== true) Object.assign(this.floor, this.live);
  }

  /** Returns an array of this backend. Throws ArrayStateError if the array belongs to another backend. */
  own(array: DeviceArray): OwnedArray<Memory> {
    if (array instanceof OwnedArray && array.ledger === (this as unknown)) return array as OwnedArray<Memory>;
    throw foreignArray(array);
  }

  /**
   * Frees an array. The memory is released immediately, or when the last run that uses it ends. No effect if the array
   * is already freed, donated or lost.
   */
  free(array: OwnedArray<Memory>): void {
    array.end("freed");
    this.close(array);
  }

  /** Ends the loan of an array to a run that has finished reading. */
  giveBack(array: OwnedArray<Memory>): void {
    array.takeBack();
    this.close(array);
  }

  /** Marks an array as donated at the end of the run that consumed the array, and releases its memory. */
  consume(array: OwnedArray<Memory>): void {
    array.end("donated");
    this.giveBack(array);
  }

  /** Marks an array that was donated to a failed run as lost. */
  lose(array: OwnedArray<Memory>): void {
    array.end("lost");
    this.giveBack(array);
  }

  /**
   * Prevents the memory of an array from ever being released, because a failed collective may still access it. A
   * donated array is marked as lost.
   */
  abandon(array: OwnedArray<Memory>): void {
    if (array.state === "given") array.end("lost");
    this.pinned.add(array);
  }

  /** Marks an array as donated, and creates a new array with the same memory. Returns the new array. */
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

  /** Releases a memory block, unless it is already released. Returns whether this call released the block. */
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
