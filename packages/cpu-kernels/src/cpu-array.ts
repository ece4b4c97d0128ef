import { byteLength, type DeviceArray, type DType, formatSpec, type Shape, type TensorSpec } from "@skein/tensor-core";
import type { Arena } from "./arena.ts";
import { ArrayStateError } from "./errors.ts";

/** Where an owned block lies; `undefined` once it was given back. */
interface Lease {
  address: number | undefined;
}

/** The right to a block of the arena. Whoever holds it keeps the memory; when nobody does, it goes back. */
class Holding {
  readonly lease: Lease = { address: undefined };
}

/** An array in the arena of one rank. */
export class CpuArray implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  private holding: Holding | undefined;
  private fate: "freed" | "given away to a compiled function (donated)" = "freed";

  constructor(spec: TensorSpec, holding: Holding) {
    this.dtype = spec.dtype;
    this.shape = spec.shape;
    this.bytes = byteLength(spec);
    this.holding = holding;
  }

  /** Byte address in the shared memory. */
  get address(): number {
    const address = this.holding?.lease.address;
    if (address === undefined)
      throw new ArrayStateError(
        `${formatSpec(this)} was ${this.fate} and cannot be used again; keep the array that the call returned instead`,
      );
    return address;
  }

  /** End this array and hand out its right to the memory; `undefined` if it has ended before. */
  surrender(fate: CpuArray["fate"]): Holding | undefined {
    const { holding } = this;
    if (holding !== undefined) this.fate = fate;
    this.holding = undefined;
    return holding;
  }
}

const donated = "given away to a compiled function (donated)";

/** An array of this backend. @throws ArrayStateError for one of another backend. */
export const ownArray = (array: DeviceArray): CpuArray => {
  if (array instanceof CpuArray) return array;
  throw new ArrayStateError("this array lives on another backend; download it there and upload it here");
};

/**
 * Who owns which memory of an arena. An array that its owner drops without freeing it is collected all the same;
 * freeing only does it sooner.
 */
export class ArrayLedger {
  private readonly arena: Arena;
  private readonly dropped: FinalizationRegistry<Lease>;
  // V8 keeps a record of each registration until the next full collection, so holdings are used again: a training step registers nothing.
  private readonly idle: Holding[] = [];

  constructor(arena: Arena) {
    this.arena = arena;
    this.dropped = new FinalizationRegistry(({ address }) => {
      if (address !== undefined) arena.release(address);
    });
  }

  /** An array over memory that was allocated from the arena, and belongs to the array from now on. */
  open(spec: TensorSpec, address: number): CpuArray {
    let holding = this.idle.pop();
    if (holding === undefined) {
      holding = new Holding();
      this.dropped.register(holding, holding.lease);
    }
    holding.lease.address = address;
    return new CpuArray(spec, holding);
  }

  /** Give the memory back. Freeing twice does nothing. */
  free(array: CpuArray): void {
    this.close(array.surrender("freed"));
  }

  /** End a donated array whose memory is of no more use. */
  consume(array: CpuArray): void {
    this.close(array.surrender(donated));
  }

  /** End a donated array whose memory lives on in another. */
  takeOver(array: CpuArray, spec: TensorSpec): CpuArray {
    void array.address; // refuses an array that has ended
    const holding = array.surrender(donated);
    return new CpuArray(spec, holding!);
  }

  private close(holding: Holding | undefined): void {
    if (holding?.lease.address === undefined) return;
    this.arena.release(holding.lease.address);
    holding.lease.address = undefined;
    this.idle.push(holding);
  }
}
