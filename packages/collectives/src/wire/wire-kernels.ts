import type { WasmMemory } from "@skein/tensor-core/backend";
import { wasmBase64 } from "../generated/wire.ts";
import { type MessageMemory, wasmMessageMemory } from "../message-memory.ts";

interface WireExports {
  foldScratchBytes(): number;
  foldMessage(message: number, bytes: number, initial: number, scratch: number, rest: number): number;
  codecScratchBytes(): number;
  sampleOf(count: number): number;
  windowBf16(from: number, count: number, counts: number): number;
  windowF32(from: number, count: number, counts: number): number;
  encodeBf16(from: number, count: number, first: number, to: number, maxEscapes: number, list: number): number;
  encodeF32(from: number, count: number, first: number, to: number, maxEscapes: number, list: number): number;
  decodeBf16(from: number, count: number, first: number, to: number, numEscapes: number, list: number): number;
  decodeF32(from: number, count: number, first: number, to: number, numEscapes: number, list: number): number;
}

/** Memory in which checksums and the codec work in place; bytes in other memory are copied to this memory in chunks. */
export interface WireMemory {
  readonly memory: WasmMemory;
  /** Allocator in `memory` for this thread. */
  readonly messages: MessageMemory;
}

/** WebAssembly functions for checksums and the codec, for one thread. */
export interface WireKernels {
  readonly exports: WireExports;
  readonly messages: MessageMemory;
  /** Returns the address of `bytes` in the kernels' memory; undefined if they are in another memory. */
  addressOf(bytes: Uint8Array): number | undefined;
}

/**
 * Compiles and instantiates the WebAssembly functions, which takes about 1 ms. Call this function one time per thread;
 * do not share the result between threads.
 *
 * The module has no data segment and no stack: its working memory is allocated by `wireMemory.messages`, so it can run
 * over a world's memory without overwriting other data. (A separate memory would cost a copy of every payload.)
 * @param wireMemory memory of the kernels. Default: a new memory.
 */
export const openWireKernels = (wireMemory: WireMemory = newWireMemory()): WireKernels => {
  const { memory, messages } = wireMemory;
  const module = new WebAssembly.Module(Uint8Array.from(atob(wasmBase64), (character) => character.charCodeAt(0)));
  const exports = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as WireExports;
  const probe = messages.take(probeBytes);
  const known = new WeakMap<ArrayBufferLike, boolean>();
  const isKernelMemory = (buffer: ArrayBufferLike): boolean => {
    if (!(buffer instanceof SharedArrayBuffer)) return false;
    let isShared = known.get(buffer);
    if (isShared === undefined) known.set(buffer, (isShared = sharesMemory(buffer, probe)));
    return isShared;
  };
  return { exports, messages, addressOf: (bytes) => (isKernelMemory(bytes.buffer) ? bytes.byteOffset : undefined) };
};

const newWireMemory = (): WireMemory => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65_536, shared: true });
  return { memory, messages: wasmMessageMemory(memory) };
};

const probeBytes = 16;

// After a memory has grown, it has another buffer object over the same bytes, and views of the old buffer stay in use.
// So buffer objects cannot be compared. Instead, a value is written to the kernels' memory, which is visible through
// every buffer over that memory. A buffer that ends before the probe counts as foreign, which costs a copy.
const sharesMemory = (buffer: SharedArrayBuffer, probe: Uint8Array): boolean => {
  if (buffer.byteLength < probe.byteOffset + probe.byteLength) return false;
  const seen = new Uint8Array(buffer, probe.byteOffset, probe.byteLength);
  return [0x5a, 0xa5].every((value) => {
    probe.fill(value);
    return seen.every((byte) => byte === value);
  });
};
