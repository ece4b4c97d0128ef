import type { DeviceArray } from "../backend.ts";
import type { DType } from "../dtype.ts";
import { ArrayStateError } from "../errors.ts";
import { byteLength, formatSpec, type Shape, type TensorSpec } from "../shape.ts";

/** Where an owned block lies; `undefined` once it was given back. */
interface Lease<Memory> {
  memory: Memory | undefined;
}

/** The right to a block of device memory. Whoever holds it keeps the memory; when nobody does, it goes back. */
class Holding<Memory> {
  readonly lease: Lease<Memory> = { memory: undefined };
}

const donated = "given away to a compiled function (donated)";

type Fate = "freed" | typeof donated;

/** An array in the memory of one backend. */
export class OwnedArray<Memory> implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  readonly ledger: ArrayLedger<Memory>;
  private holding: Holding<Memory> | undefined;
  private fate: Fate = "freed";

  constructor(spec: TensorSpec, holding: Holding<Memory>, ledger: ArrayLedger<Memory>) {
    this.dtype = spec.dtype;
    this.shape = spec.shape;
    this.bytes = byteLength(spec);
    this.holding = holding;
    this.ledger = ledger;
  }

  /** Where the values lie. @throws ArrayStateError once the array has ended. */
  get memory(): Memory {
    const memory = this.holding?.lease.memory;
    if (memory === undefined)
      throw new ArrayStateError(
        `${formatSpec(this)} was ${this.fate} and cannot be used again; keep the array that the call returned instead`,
      );
    return memory;
  }

  /** End this array and hand out its right to the memory; `undefined` if it has ended before. */
  surrender(fate: Fate): Holding<Memory> | undefined {
    const { holding } = this;
    if (holding !== undefined) this.fate = fate;
    this.holding = undefined;
    return holding;
  }
}

/**
 * Who owns which memory of a backend. An array that its owner drops without freeing it is collected all the same;
 * freeing only does it sooner.
 *
 * @param release takes a block back.
 */
export class ArrayLedger<Memory> {
  private readonly release: (memory: Memory) => void;
  private readonly dropped: FinalizationRegistry<Lease<Memory>>;
  // V8 keeps a record of each registration until the next full collection, so holdings are used again: a training step registers nothing.
  private readonly idle: Holding<Memory>[] = [];

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
    throw new ArrayStateError("this array lives on another backend; download it there and upload it here");
  }

  /** Give the memory back. Freeing twice does nothing. */
  free(array: OwnedArray<Memory>): void {
    this.close(array.surrender("freed"));
  }

  /** End a donated array whose memory is of no more use. */
  consume(array: OwnedArray<Memory>): void {
    this.close(array.surrender(donated));
  }

  /** End a donated array whose memory lives on in another. */
  takeOver(array: OwnedArray<Memory>, spec: TensorSpec): OwnedArray<Memory> {
    void array.memory; // refuses an array that has ended
    return new OwnedArray(spec, array.surrender(donated)!, this);
  }

  private close(holding: Holding<Memory> | undefined): void {
    const memory = holding?.lease.memory;
    if (memory === undefined) return;
    this.release(memory);
    holding!.lease.memory = undefined;
    this.idle.push(holding!);
  }
}
