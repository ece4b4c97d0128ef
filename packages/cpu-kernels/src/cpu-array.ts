import { byteLength, type DeviceArray, type DType, formatSpec, type Shape, type TensorSpec } from "@skein/tensor-core";
import type { Arena } from "./arena.ts";
import { ArrayStateError } from "./errors.ts";

/** An array in the arena of one rank. */
export class CpuArray implements DeviceArray {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly bytes: number;
  private readonly place: number;
  private state: "live" | "freed" | "donated" = "live";

  constructor(spec: TensorSpec, address: number) {
    this.dtype = spec.dtype;
    this.shape = spec.shape;
    this.bytes = byteLength(spec);
    this.place = address;
  }

  /** Byte address in the shared memory. */
  get address(): number {
    if (this.state !== "live") {
      const fate = this.state === "freed" ? "freed" : "given away to a compiled function (donated)";
      throw new ArrayStateError(`${formatSpec(this)} was ${fate} and cannot be used again; keep the array that the call returned instead`);
    }
    return this.place;
  }

  get isLive(): boolean {
    return this.state === "live";
  }

  retire(state: "freed" | "donated"): void {
    this.state = state;
  }
}

/**
 * Who owns which memory of an arena. An array that its owner drops without freeing it is collected all the same;
 * freeing only does it sooner.
 */
export class ArrayLedger {
  private readonly arena: Arena;
  private readonly dropped: FinalizationRegistry<number>;

  constructor(arena: Arena) {
    this.arena = arena;
    this.dropped = new FinalizationRegistry((address) => arena.release(address));
  }

  /** An array over memory that was allocated from the arena, and belongs to the array from now on. */
  open(spec: TensorSpec, address: number): CpuArray {
    const array = new CpuArray(spec, address);
    this.dropped.register(array, address, array);
    return array;
  }

  /** Give the memory back. Freeing twice does nothing. */
  free(array: CpuArray): void {
    if (!array.isLive) return;
    const { address } = array;
    this.dropped.unregister(array);
    array.retire("freed");
    this.arena.release(address);
  }

  /** End an array whose memory lives on in an output (`keep`), or goes back. */
  donate(array: CpuArray, keep: boolean): void {
    const { address } = array;
    this.dropped.unregister(array);
    array.retire("donated");
    if (!keep) this.arena.release(address);
  }
}
