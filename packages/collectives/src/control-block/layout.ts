// Words (i32) of the control block that all threads of a process share. Each region begins at a multiple of 64 bytes,
// so that threads waiting for different events do not share a cache line.
//
//   state      first failure: claimed, recorded, length of its record; closed; then the record as text
//   ranks      per rank of this process: wake events, groups, then its lanes of requests
//   channels   per lane and ordered pair of ranks of this process: number of sent messages, slots of (address, bytes,
//              tag), number of returned messages
//   exchanges  per lane and rank of this process: number of published requests, and descriptions of the last two

/** Number of request priorities. Each priority has a separate queue and separate channels. */
export const laneCount = 4;
/** Upper bound (exclusive) of the group number in a tag. Groups are the world and the groups created by `split`. */
export const groupLimit = 16;
export const slotCount = 8;
/** Maximum number of requests in flight per rank and lane. `start` waits while the queue is full. */
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
 * Word offsets in the state of one rank's exchanges on one lane. `shown`: counter of the parts that the rank has
 * published, polled by peers. `parts`: first of two part descriptions of `ofPart` words each, one for even and one for
 * odd exchanges, so that the last two parts can be read. `bytes`, `tag`, `meaning`: offsets of a part's size in bytes,
 * tag and meaning (`meaningOf`) in its description. The descriptions are not on the cache line of `shown`, because a
 * poll between two stores would move the line to another core.
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
  /** Code of the algorithm that executed the request (see `algorithmNamed`), written by the executing thread. */
  algorithm: 15,
  /** Flag: 1 while the request must not be executed yet. Cleared by the thread that posted the request. */
  held: 16,
} as const;

/**
 * Event that a thread can wait for. `message`: a message arrived or its slot was returned. `request`: this rank posted
 * a request. `done`: a request of this rank completed. Separate events avoid unnecessary wake-ups.
 */
export type WakeEvent = "message" | "request" | "done";
export const wakeEvents: Readonly<Record<WakeEvent, number>> = { message: 0, request: 16, done: 32 };
/**
 * Offset from the word that counts an event to the word with the number of threads that sleep until the event. If no
 * thread sleeps, no wake-up is needed.
 */
export const sleepersWord = 1;
export const companionBusyWord = 48;
/**
 * Word offsets of the state of the express connections. `use`: 1 while the rank's compute thread uses the connections,
 * 2 after they are closed. The other words describe a wait of the compute thread. `waits`: the sequence number of the
 * wait, or 0 if the thread does not wait. `peer`: the awaited rank. `tag` and `lane`: tag and lane of the request.
 * `ended`: 1 if the peer has closed the connection.
 */
export const expressWord = { use: 64, waits: 65, peer: 66, tag: 67, ended: 68, lane: 69 } as const;

/** Returns the size of a control block for `localCount` ranks of a world, in bytes. */
export const controlBytes = (worldSize: number, localCount: number = worldSize): number =>
  4 *
  (stateWords +
    localCount * rankWords(worldSize) +
    laneCount * localCount * (localCount * channelWords + exchangeWords));
