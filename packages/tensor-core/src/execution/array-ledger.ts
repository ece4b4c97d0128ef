import type { DeviceArray } from "./backend.ts";
import type { DType } from "../dtype.ts";
import { ArrayStateError } from "../errors.ts";
import { byteLength, formatSpec, type Shape, type TensorSpec } from "../shape.ts";
import { Shown } from "../shown.ts";
import { foreignArray } from "./foreign-array.ts";

/** Where an owned block lies; `undefined` once it was given back. */
interface Lease<Memory> {
  memory: Memory | undefined;
}

/** The right to a block of device memory. Whoever holds it keeps the memory; when nobody does, it goes back. */
class Holding<Memory> {
  readonly lease: Lease<Memory> = { memory: undefined };
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
export class OwnedArray<Memory> extends Shown implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  readonly ledger: ArrayLedger<Memory>;
  private holding: Holding<Memory> | undefined;
  private fate: Fate | undefined;
  private readers = 0;
  private given = false;

  protected get kind(): "DeviceArray" {
    return "DeviceArray";
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
 * Who owns which memory of a backend, and who has borrowed it. An array that its owner drops without freeing it is
 * collected all the same; freeing only does it sooner. Memory goes back when its array has ended and no run uses it.
 *
 * @param release takes a block back.
 */
export class ArrayLedger<Memory> {
  private readonly release: (memory: Memory) => void;
  private readonly dropped: FinalizationRegistry<Lease<Memory>>;
  // V8 keeps a record of each registration until the next full collection, so holdings are used again: a training step
  // registers nothing.
  private readonly idle: Holding<Memory>[] = [];
  // Arrays that a failed collective may still read: never collected, so that their memory is not used again.
  private readonly pinned = new Set<OwnedArray<Memory>>();

  constructor(release: (memory: Memory) => void) {
    this.release = release;
    this.dropped = new FinalizationRegistry(({ memory }) => {
      if (memory !== undefined) release(memory);
    });
  }

  /** An array over memory that was allocated from the backend, and belongs to the array from now on. */
  open(spec: TensorSpec, memory: Memory): OwnedArray<Memory> {
    let holding = this.idle.pop();
    if (holding === undefined) {
      holding = new Holding();
      this.dropped.register(holding, holding.lease);
    }
    holding.lease.memory = memory;
    return new OwnedArray(spec, holding, this);
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
    return new OwnedArray(spec, array.surrender()!, this);
  }

  private close(array: OwnedArray<Memory>): void {
    const holding = array.surrender();
    const memory = holding?.lease.memory;
    if (memory === undefined) return;
    this.release(memory);
    holding!.lease.memory = undefined;
    this.idle.push(holding!);
  }
}
