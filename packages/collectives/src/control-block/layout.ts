// Words (i32) of the control block that all threads of a process share. Each region starts on its own 64-byte line, so
// that threads which wait for different things do not take each other's lines away.
//
//   state      first failure: claimed, there, length of its record; closed; then the record as text
//   ranks      for each rank of this process: wake events, groups, then its lanes of requests
//   channels   for each lane and each ordered pair of ranks of this process: messages sent, slots of (address, bytes,
//   tag); returned
//   exchanges  for each lane and each rank of this process: requests shown, and what the last two are

/** Priorities of requests; each has a queue and channels of its own. */
export const laneCount = 4;
/** Groups that `split` may make of one world. */
export const groupLimit = 16;
export const slotCount = 8;
/** Requests of one rank and lane that may be in flight at once; `start` waits when there are more. */
export const queueLength = 64;

export const recordBytes = 1024;
export const stateWords: number = 16 + recordBytes / 4;
export const channelWords = 48;
export const exchangeWords = 32;
export const eventWords: number = 16 * 5;
export const requestWords = 20;
export const laneWords: number = 16 * 4 + queueLength * requestWords;
export const groupNameWords = 8;

const line = (words: number): number => Math.ceil(words / 16) * 16;
export const groupWords = (worldSize: number): number => line(1 + groupNameWords + worldSize);
export const rankWords = (worldSize: number): number =>
  eventWords + groupLimit * groupWords(worldSize) + laneCount * laneWords;

export const stateWord = { claimed: 0, failed: 1, recordLength: 2, closed: 3, record: 16 } as const;
export const channelWord = { sent: 0, slots: 1, returned: 32 } as const;
/**
 * A part is described by three words; those of even and odd requests lie apart, so that the last two can be read. On
 * another line than the count that peers look at all the time: they would take the line away between two stores.
 */
export const exchangeWord = { shown: 0, parts: 16, bytes: 0, tag: 1, meaning: 2, ofPart: 3 } as const;
export const laneWord = { posted: 0, done: 16, lock: 32, bytesSent: 48, requests: 64 } as const;
export const requestWord = {
  tag: 0,
  dtype: 1,
  reduction: 2,
  input: 3,
  inputBytes: 4,
  output: 5,
  outputBytes: 6,
  root: 7,
  to: 8,
  from: 9,
  capacity: 10,
  rows: 11,
  rowsBytes: 12,
  receivedRows: 13,
  receivedRowsBytes: 14,
  /** Written by who executes it: a code of `algorithmNamed`. */
  algorithm: 15,
  /** 1: not to be begun yet. Cleared by who posted it. */
  held: 16,
} as const;

/**
 * What a thread can wait for. `message`: one came or was given back. `request`: its own rank posted one. `done`: one of
 * its own requests ended. Apart from each other, so that nobody is woken for nothing.
 */
export type WakeEvent = "message" | "request" | "done";
export const wakeEvents: Readonly<Record<WakeEvent, number>> = { message: 0, request: 16, done: 32 };
/** Behind the count of an event: how many threads sleep until it happens. Nobody is woken where nobody sleeps. */
export const sleepersWord = 1;
export const companionBusyWord = 48;
/**
 * Of the connections that the rank's own thread reads and writes. `use`: 1 while it does, 2 once they are closed. The
 * others say what it waits for there: `waits`, 0 or how many waits there were; the peer; the request's tag and lane;
 * `ended`, 1 when the peer has ended the connection.
 */
export const expressWord = { use: 64, waits: 65, peer: 66, tag: 67, ended: 68, lane: 69 } as const;

/** Bytes of the control block of `localCount` ranks of a world. */
export const controlBytes = (worldSize: number, localCount: number = worldSize): number =>
  4 *
  (stateWords +
    localCount * rankWords(worldSize) +
    laneCount * localCount * (localCount * channelWords + exchangeWords));
