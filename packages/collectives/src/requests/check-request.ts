import { ArgumentError, bytesPerElement } from "@skein/tensor-core";
import { checkRowCounts, type CollectiveRequest, readRowCounts, type WasmMemory } from "@skein/tensor-core/backend";
import { reducible } from "../arithmetic.ts";
import { kinds } from "../control-block/tag.ts";
import { laneCount } from "../control-block/layout.ts";
import { combiningKinds, inPlaceKinds } from "./kind-facts.ts";

interface Group {
  readonly rank: number;
  readonly worldSize: number;
  readonly memory: WasmMemory;
}

/**
 * Maps each buffer that is known to belong to a memory to that memory. A memory can have several buffers, because it
 * gets a new buffer over the same bytes when a thread grows it.
 */
const knownViews = new WeakMap<ArrayBufferLike, WasmMemory>();

/**
 * Whether a region of at least one byte is in a memory. If two threads grow a memory at the same time, a thread may
 * have two buffers of equal length, so neither identity nor length is conclusive. Therefore, one time per buffer, a bit
 * of the region is flipped, compared with the memory, and restored.
 */
const isWithin = (region: Uint8Array, memory: WasmMemory): boolean => {
  if (knownViews.get(region.buffer) === memory) return true; // Reading `memory.buffer` takes a tenth of a microsecond.
  if (region.buffer === memory.buffer) {
    knownViews.set(region.buffer, memory);
    return true;
  }
  if (!(region.buffer instanceof SharedArrayBuffer) || region.byteOffset >= memory.buffer.byteLength) return false;
  const same = new Uint8Array(memory.buffer);
  const agree = (): boolean => Atomics.load(region, 0) === Atomics.load(same, region.byteOffset);
  if (!agree()) return false;
  Atomics.xor(region, 0, 1);
  const found = agree();
  Atomics.xor(region, 0, 1);
  if (found) knownViews.set(region.buffer, memory);
  return found;
};

/**
 * Checks a request before it is posted.
 *
 * @throws ArgumentError that names the violated rule.
 */
export const checkRequest = (request: CollectiveRequest, { rank, worldSize, memory }: Group): void => {
  const { kind, dtype, input, output, ragged, priority = 0 } = request;
  const reject = (rule: string): never => {
    throw new ArgumentError(`${kind}: ${rule}`);
  };
  if (!kinds.includes(kind)) reject(`is not a collective; it is one of ${kinds.join(", ")}`);
  if (!Number.isInteger(priority) || priority < 0 || priority >= laneCount)
    reject(`priority ${priority} is not one of 0 to ${laneCount - 1}, the highest`);
  const requireInside = (bytes: Uint8Array): void => {
    if (bytes.byteLength > 0 && !isWithin(bytes, memory))
      reject(
        `a region of ${bytes.byteLength} bytes is outside the world's WebAssembly memory; allocate it there, so that peers can read it in place`,
      );
  };
  const requireWhole = (bytes: Uint8Array): void => {
    if (bytes.byteLength % bytesPerElement[dtype] !== 0)
      reject(`${bytes.byteLength} bytes are not a whole number of ${dtype} elements`);
  };
  // Regions are checked one by one, without lists, because a small collective takes microseconds.
  requireInside(input);
  requireInside(output);
  if (ragged !== undefined) {
    requireInside(ragged.rows);
    requireInside(ragged.receivedRows);
  }
  requireWhole(input);
  requireWhole(output);
  const factor = kind === "all-gather" ? worldSize : 1;
  const divisor = kind === "reduce-scatter" ? worldSize : 1;
  if (input.byteLength * factor !== output.byteLength * divisor)
    reject(
      `an input of ${input.byteLength} bytes does not fit an output of ${output.byteLength} on ${worldSize} ranks; see the table at CollectiveRequest`,
    );
  if (kind === "all-to-all" && input.byteLength % (worldSize * bytesPerElement[dtype]) !== 0)
    reject(`${input.byteLength} bytes cannot be split into ${worldSize} equal chunks of ${dtype}; pad the input`);
  if (combiningKinds.has(kind) && !reducible.has(dtype))
    reject(`dtype ${dtype} cannot be reduced, it takes ${[...reducible].join(", ")}; cast it first`);
  const requireRank = (name: "root" | "to" | "from"): void => {
    const peer = request[name];
    if (peer !== undefined && !(Number.isInteger(peer) && peer >= 0 && peer < worldSize))
      reject(`${name} ${peer} is not a rank; use 0 to ${worldSize - 1}`);
  };
  requireRank("root");
  requireRank("to");
  requireRank("from");
  if (kind === "send-receive" && (request.to === rank) !== (request.from === rank))
    reject(
      `rank ${rank} sends to ${request.to} and receives from ${request.from}; a message to the rank itself needs both`,
    );
  if (ragged !== undefined) {
    if (kind !== "all-to-all" && kind !== "all-gather") reject("cannot be ragged; only all-to-all and all-gather can");
    const chunk = kind === "all-to-all" ? input.byteLength / worldSize : input.byteLength;
    const { capacity, rows, receivedRows } = ragged;
    if (
      !Number.isInteger(capacity) ||
      capacity < 0 ||
      (capacity === 0 ? chunk !== 0 : (chunk / bytesPerElement[dtype]) % capacity !== 0)
    )
      reject(
        `a chunk of ${chunk} bytes cannot be split into ${capacity} rows of ${dtype}; capacity is the number of rows of one chunk`,
      );
    const counts = kind === "all-to-all" ? worldSize : 1;
    if (rows.byteLength !== 4 * counts || receivedRows.byteLength !== 4 * worldSize)
      reject(
        `row counts have ${rows.byteLength} and ${receivedRows.byteLength} bytes; i32 counts for ${worldSize} ranks have ${4 * counts} and ${4 * worldSize}`,
      );
    checkRowCounts(kind, rank, readRowCounts(rows), capacity);
  }
  const areDisjoint =
    input.byteOffset + input.byteLength <= output.byteOffset ||
    output.byteOffset + output.byteLength <= input.byteOffset;
  const same = input.byteOffset === output.byteOffset && input.byteLength === output.byteLength;
  if (!areDisjoint && !(same && inPlaceKinds.has(kind)))
    reject(`input and output overlap; only ${[...inPlaceKinds].join(", ")} may work in place, with equal regions`);
};
