import { parentPort, workerData } from "node:worker_threads";
import { describeError } from "@skein/cli/node";
import { type Preference, wasmArithmetic } from "@skein/collectives";
import { type BlockingCommunicator, joinWorld } from "@skein/collectives/node";
import { Arena } from "@skein/cpu-kernels";
import { median } from "@skein/measuring";
import { allToAllTimes } from "../rank/all-to-all-times.ts";
import type { LinksRankInput, MeasuredLinks, PairSamples, RankMessage } from "../rank/messages.ts";

// Entry file of a rank's thread that measures links. It measures round trips between all pairs of ranks, timed by the
// rank that sends first, and then the all-to-all of each level.

/**
 * Returns the number of times that a message of this size is sent and timed. The measured time is the median. Large
 * messages are timed less often, because their times vary less.
 */
const repeatsOf = (bytes: number): number => (bytes < 100_000 ? 41 : bytes < 1_000_000 ? 15 : 7);

/** Shared memory of a link measurement: data to send, and buffer for received data. */
interface Regions {
  readonly input: Uint8Array;
  readonly output: Uint8Array;
}

class Meter {
  private readonly communicator: BlockingCommunicator;
  private readonly input: Uint8Array;
  private readonly output: Uint8Array;

  constructor(communicator: BlockingCommunicator, { input, output }: Regions) {
    this.communicator = communicator;
    this.input = input;
    this.output = output;
  }

  /** Sends `bytes` bytes from one rank to another. Must be called on every rank. */
  send(bytes: number, from: number, to: number): void {
    const { rank } = this.communicator;
    this.communicator.wait(
      this.communicator.start({
        kind: "send-receive",
        dtype: "u8",
        input: this.input.subarray(0, bytes),
        output: this.output.subarray(0, bytes),
        ...(rank === from && { to }),
        ...(rank === to && { from }),
      }),
    );
  }

  barrier(): void {
    const none = this.input.subarray(0, 0);
    this.communicator.wait(this.communicator.start({ kind: "barrier", dtype: "u8", input: none, output: none }));
  }

  /**
   * Measures the overhead of a request to the thread that sends and receives, in seconds, with a message that contains
   * no data. The overhead is not part of a link's time.
   */
  overheadSeconds(): number {
    const { rank } = this.communicator;
    return this.time(41, () => this.send(0, rank, rank));
  }

  /**
   * Measures the one-way seconds of a message between two ranks. Returns the time on rank `from`, and undefined on all
   * other ranks.
   */
  pairSeconds(bytes: number, from: number, to: number): number | undefined {
    this.barrier();
    const roundTrip = (): void => {
      this.send(bytes, from, to);
      this.send(bytes, to, from);
    };
    const seconds = this.time(repeatsOf(bytes), roundTrip) / 2;
    return this.communicator.rank === from ? seconds : undefined;
  }

  private time(repeats: number, call: () => void): number {
    call();
    const times = Array.from({ length: repeats }, () => {
      const began = performance.now();
      call();
      return (performance.now() - began) / 1000;
    });
    return median(times);
  }
}

/** Measures the time per byte, in seconds, of adding one operand in a reduction of 1 MiB operands. */
const reduceSecondsPerByte = ({ module, connection }: LinksRankInput, arena: Arena): number => {
  const arithmetic = wasmArithmetic(module, connection.memory);
  const bytes = 2 ** 20;
  const [a, b] = [0, 1].map(() => arena.bytesAt(arena.allocate(bytes), bytes)) as [Uint8Array, Uint8Array];
  const times = Array.from({ length: 41 }, () => {
    const began = performance.now();
    arithmetic.combine("f32", "sum", [a], [a, b]);
    return (performance.now() - began) / 1000;
  });
  return median(times) / bytes;
};

const measure = (input: LinksRankInput): MeasuredLinks | undefined => {
  const { connection, messageBytes } = input;
  const communicator = joinWorld(connection);
  const { worldSize } = communicator;
  const arena = new Arena(connection.memory);
  const largest = Math.max(...messageBytes) + worldSize; // operands of an all-to-all are rounded up to whole chunks
  const region = (): Uint8Array => arena.bytesAt(arena.allocate(largest), largest);
  const regions = { input: region(), output: region() };
  const meter = new Meter(communicator, regions);
  const pairs: PairSamples[] = [];
  for (let from = 0; from < worldSize; from++) {
    for (let to = from + 1; to < worldSize; to++) {
      const overhead = meter.overheadSeconds();
      const samples = messageBytes.flatMap((bytes) => {
        const seconds = meter.pairSeconds(bytes, from, to);
        return seconds === undefined ? [] : [{ bytes, seconds: Math.max(seconds - overhead, seconds / 10) }];
      });
      if (samples.length > 0) pairs.push({ from, to, samples });
    }
  }
  meter.barrier();
  const everyone = Array.from({ length: worldSize }, (_, other) => other);
  const hosts = (connection.preference as Preference).hosts ?? [everyone];
  const allToAll = allToAllTimes(communicator, hosts, messageBytes, regions);
  return { hosts, pairs, allToAll, reduceSecondsPerByte: reduceSecondsPerByte(input, arena) };
};

const post = (message: RankMessage): void => parentPort!.postMessage(message);
try {
  const measured = measure(workerData as LinksRankInput);
  if (measured !== undefined) post({ type: "links", measured });
  post({ type: "done", step: 0, bytesSent: 0, process: String(process.pid), peakMemoryBytes: 0 });
} catch (error) {
  post({ type: "failed", error: describeError(error) });
}
