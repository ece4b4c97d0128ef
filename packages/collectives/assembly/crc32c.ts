import { longHistory, longRest, longStep, shortHistory, shortRest, shortStep } from "./fold";

// Number of message bytes per pass through the work area. The work area, its history and the message bytes of a pass
// fit in the L1 cache together.
const blockBytes: usize = 16384;

// Offsets of the regions in the caller's scratch memory.
const workOffset: usize = 0;
const foldedOffset: usize = workOffset + blockBytes + 2 * longRest;
const shortWorkOffset: usize = foldedOffset + 2048;
const scratchEnd: usize = shortWorkOffset + 2048 + 2 * shortRest;

/** Returns the size of the scratch memory for `foldMessage`, in bytes. */
export function foldScratchBytes(): usize {
  return scratchEnd;
}

/**
 * Writes a short message to `rest` that has the same CRC remainder as the message at `message` with `initial` added
 * (xor) to its first four bytes. The message at `message` has `bytes` ≥ 256 bytes and is not modified. Returns the
 * length of the short message, 224 to 239 bytes.
 */
export function foldMessage(message: usize, bytes: usize, initial: u32, scratch: usize, rest: usize): usize {
  if (bytes < 2048) return foldShort(message, bytes, initial, scratch + shortWorkOffset, rest);
  const folded = scratch + foldedOffset;
  const left = foldLong(message, bytes, initial, scratch + workOffset, folded);
  return foldShort(folded, left, 0, scratch + shortWorkOffset, rest);
}

function foldLong(message: usize, bytes: usize, initial: u32, work: usize, rest: usize): usize {
  memory.fill(work, 0, longHistory);
  store<u32>(work, initial);
  let left = bytes;
  while (left >= longRest + 64) {
    const block = min((left - longRest) & ~63, blockBytes);
    const end = message + block;
    let w = work;
    for (; message < end; message += 64, w += 64) {
      v128.store(w, longStep(message, w), 836, 1);
      v128.store(w, longStep(message + 16, w + 16), 836 + 16, 1);
      v128.store(w, longStep(message + 32, w + 32), 836 + 32, 1);
      v128.store(w, longStep(message + 48, w + 48), 836 + 48, 1);
    }
    memory.copy(work, w, longHistory);
    left -= block;
  }
  // The last bytes of the message are not folded. The folded bytes before them are only added (xor) to them.
  memory.fill(work + longHistory, 0, longRest);
  for (let i: usize = 0; i < longRest; i += 16) v128.store(rest + i, longStep(message + i, work + i));
  memory.copy(rest + longRest, message + longRest, left - longRest);
  return left;
}

function foldShort(message: usize, bytes: usize, initial: u32, work: usize, rest: usize): usize {
  memory.fill(work, 0, shortHistory);
  store<u32>(work, initial);
  const struck = (bytes - shortRest) & ~15;
  for (let i: usize = 0; i < struck; i += 16) v128.store(work + i, shortStep(message + i, work + i), 209, 1);
  message += struck;
  work += struck;
  const left = bytes - struck;
  memory.fill(work + shortHistory, 0, shortRest);
  for (let i: usize = 0; i < shortRest; i += 16) v128.store(rest + i, shortStep(message + i, work + i));
  memory.copy(rest + shortRest, message + shortRest, left - shortRest);
  return left;
}
