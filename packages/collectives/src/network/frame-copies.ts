/**
 * Copies frame payloads to reused memory. Allocating half a megabyte per copy would cause garbage collections that take
 * milliseconds.
 */
export class FrameCopies {
  readonly #free: ArrayBuffer[] = [];
  #bytes = 0;

  /** Total size of all copies in use, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  of(payload: Uint8Array): Uint8Array {
    this.#bytes += payload.byteLength;
    const spare = this.#free.findIndex(({ byteLength }) => byteLength >= payload.byteLength);
    const [memory = new ArrayBuffer(payload.byteLength)] = spare < 0 ? [] : this.#free.splice(spare, 1);
    const copy = new Uint8Array(memory, 0, payload.byteLength);
    copy.set(payload);
    return copy;
  }

  takeBack({ buffer, byteLength }: Uint8Array): void {
    this.#bytes -= byteLength;
    this.#free.push(buffer as ArrayBuffer);
  }
}
