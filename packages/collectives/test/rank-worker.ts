import { parentPort, workerData } from "node:worker_threads";
import { bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import type { CollectiveKind, CollectiveRequest } from "@skein/tensor-core/backend";
import { ControlBlock } from "../src/control-block/control-block.ts";
import { algorithms } from "../src/algorithms.ts";
import { executeBlocking } from "../src/execute.ts";
import { plainArithmetic, scratchBytes } from "../src/index.ts";
import { ThreadTransport } from "../src/transport/thread-transport.ts";
import { joinWorld, type WorldConnection } from "../src/node.ts";
import { operand, parametersOf, regionElements, toBytes } from "./world.ts";

/** Job of all ranks in a test. */
export type Job =
  | { readonly name: "algorithms"; readonly runs: readonly Run[] }
  | {
      readonly name: "requests";
      readonly requests: readonly Request[];
      readonly startAllFirst: boolean;
      readonly repeats?: number;
    }
  | { readonly name: "die"; readonly how: "throw" | "never start" | "wait" }
  | { readonly name: "disagree"; readonly one: Request; readonly last: Request }
  | { readonly name: "fail second" }
  | { readonly name: "full queue"; readonly count: number }
  | { readonly name: "groups"; readonly partitions: readonly (readonly (readonly number[])[])[]; readonly n: number }
  | { readonly name: "split"; readonly name0: string; readonly name1: string }
  | { readonly name: "split twice" }
  | { readonly name: "exchange texts"; readonly lengths: readonly number[] }
  | { readonly name: "ragged"; readonly capacity: number; readonly rowElements: number }
  | { readonly name: "priorities"; readonly large: number; readonly small: number };

/** One run of an algorithm on `n` elements. */
export interface Run {
  readonly algorithm: string;
  readonly n: number;
  readonly inPlace: boolean;
}

export interface Request {
  readonly kind: CollectiveKind;
  readonly n: number;
  readonly dtype?: DType;
  readonly reduction?: Reduction;
  readonly root?: number;
  readonly inPlace?: boolean;
  readonly priority?: number;
  readonly awaited?: boolean;
}

export interface Answer {
  readonly outputs: readonly Uint8Array[];
  readonly bytesSent: number;
  readonly error?: { readonly code: string; readonly message: string; readonly peer: number };
}

export interface RankData {
  readonly connection: WorldConnection;
  readonly job: Job;
  /** Address and length of this rank's section of the memory. */
  readonly address: number;
  readonly length: number;
}

const { connection, job, address, length } = workerData as RankData;
const { rank, worldSize, memory } = connection;

let next = address;
const allocate = (bytes: number): Uint8Array => {
  const region = new Uint8Array(memory.buffer, next, bytes);
  next += Math.ceil(bytes / 16) * 16;
  if (next > address + length) throw new Error("the test gave this rank too little memory");
  return region;
};

const regions = ({
  kind,
  n,
  dtype = "f32",
  inPlace = false,
}: Request): { input: Uint8Array; output: Uint8Array; dtype: DType } => {
  const counts = regionElements(kind, worldSize, n);
  const input = allocate(counts.input * bytesPerElement[dtype]);
  input.set(toBytes(operand(rank, counts.input, dtype), dtype));
  const output = inPlace ? input : allocate(counts.output * bytesPerElement[dtype]).fill(0x55);
  return { input, output, dtype };
};

const requestOf = (ask: Request): CollectiveRequest => {
  const { kind, n, reduction, root, priority, awaited } = ask;
  const parameters = parametersOf(rank, worldSize, n);
  return {
    kind,
    ...regions(ask),
    ...(reduction && { reduction }),
    ...(root !== undefined && { root }),
    ...(priority !== undefined && { priority }),
    ...(awaited !== undefined && { awaited }),
    ...(kind === "send-receive" && { to: parameters.to!, from: parameters.from! }),
  };
};

const control = new ControlBlock(connection);

const runAlgorithm = ({ algorithm: name, n, inPlace }: Run, tag: number, transport: ThreadTransport): Uint8Array => {
  next = address;
  const algorithm = algorithms.find((candidate) => candidate.name === name)!;
  const ask = { kind: algorithm.kind, n, inPlace };
  const { input, output } = regions(ask);
  const schedule = algorithm.schedule(parametersOf(rank, worldSize, n));
  const scratch = allocate(scratchBytes(schedule, "f32"));
  executeBlocking(schedule, { input, output, scratch, dtype: "f32", tag }, transport, plainArithmetic(), (future) => {
    if (!control.waitUntil(future.ready, "message")) future.expire();
  });
  return output.slice();
};

const run = (): Answer => {
  if (job.name === "algorithms") {
    const transport = new ThreadTransport(control, memory);
    return { outputs: job.runs.map((one, i) => runAlgorithm(one, 8 * (i + 1), transport)), bytesSent: 0 };
  }
  if (job.name === "fail second") {
    control.failLost(rank, 0, "as another thread found too");
    return { outputs: [Uint8Array.of(control.unusable ? 1 : 0)], bytesSent: 0 };
  }
  const communicator = joinWorld(connection);
  if (job.name === "requests") {
    let outputs: Uint8Array[] = [];
    for (let repeat = 0; repeat < (job.repeats ?? 1); repeat++) {
      next = address;
      const requests = job.requests.map(requestOf);
      if (job.startAllFirst)
        for (const handle of requests.map((request) => communicator.start(request))) communicator.wait(handle);
      else for (const request of requests) communicator.wait(communicator.start(request));
      const now = requests.map(({ output }) => output.slice());
      if (repeat > 0 && JSON.stringify(now) !== JSON.stringify(outputs))
        throw new Error(`repeat ${repeat} gave different bits than the one before`);
      outputs = now;
    }
    return { outputs, bytesSent: communicator.bytesSent() };
  }
  if (job.name === "full queue") {
    const region = allocate(4 * job.count);
    const words = new Int32Array(region.buffer, region.byteOffset, job.count).fill(rank + 1);
    const handles = Array.from(words, (_, i) =>
      communicator.start({
        kind: "all-reduce",
        dtype: "i32",
        input: region.subarray(4 * i, 4 * i + 4),
        output: region.subarray(4 * i, 4 * i + 4),
      }),
    );
    communicator.wait(handles.at(-1)!);
    return { outputs: [region.slice()], bytesSent: communicator.bytesSent() };
  }
  if (job.name === "groups") {
    // All groups at the same time, each with two requests that sum the ranks of the members.
    const groups = job.partitions.map((partition, axis) => communicator.split(partition, `axis ${axis}`));
    const sums = groups.flatMap((group) =>
      [0, 1].map((round) => {
        const region = allocate(4 * job.n);
        new Float32Array(region.buffer, region.byteOffset, job.n).fill(2 ** rank + round);
        return {
          region,
          group,
          handle: group.start({ kind: "all-reduce", dtype: "f32", input: region, output: region }),
        };
      }),
    );
    for (const { group, handle } of sums.toReversed()) group.wait(handle);
    return { outputs: sums.map(({ region }) => region.slice()), bytesSent: communicator.bytesSent() };
  }
  if (job.name === "split") {
    const group = communicator.split(
      [Array.from({ length: worldSize }, (_, other) => other)],
      rank === 0 ? job.name0 : job.name1,
    );
    group.wait(group.start(requestOf({ kind: "barrier", n: 0 })));
    return { outputs: [], bytesSent: communicator.bytesSent() };
  }
  if (job.name === "split twice") {
    // The first two ranks split their half again, so that they belong to one more group than the other ranks.
    const half = communicator.split([[0, 1], Array.from({ length: worldSize - 2 }, (_, other) => other + 2)], "half");
    if (rank < 2) half.split([[0], [1]], "alone");
    const evenOdd = Array.from({ length: worldSize }, (_, other) => other);
    const group = communicator.split(
      [evenOdd.filter((other) => other % 2 === 0), evenOdd.filter((other) => other % 2 === 1)],
      "even and odd",
    );
    const sum = requestOf({ kind: "all-reduce", n: 5, inPlace: true });
    group.wait(group.start(sum));
    return { outputs: [sum.output.slice()], bytesSent: communicator.bytesSent() };
  }
  if (job.name === "exchange texts") {
    const text = "é".repeat(job.lengths[rank]!) + String(rank);
    const heard = communicator.exchangeTexts(text);
    return { outputs: heard.map((one) => new TextEncoder().encode(one)), bytesSent: communicator.bytesSent() };
  }
  if (job.name === "ragged") {
    // Both kinds at the same time. Rank r has (r + 3·to) mod (capacity + 1) rows for each rank `to`, and r mod
    // (capacity + 1) rows for all ranks.
    const { capacity, rowElements } = job;
    const rowsFor = (count: number): number[] =>
      count === 1
        ? [rank % (capacity + 1)]
        : Array.from({ length: count }, (_, to) => (rank + 3 * to) % (capacity + 1));
    const started = (["all-to-all", "all-gather"] as const).map((kind) => {
      const n = capacity * rowElements;
      const rows = allocate(kind === "all-to-all" ? 4 * worldSize : 4);
      new Int32Array(rows.buffer, rows.byteOffset, rows.byteLength / 4).set(rowsFor(rows.byteLength / 4));
      const receivedRows = allocate(4 * worldSize).fill(0x55);
      const request: CollectiveRequest = { kind, ...regions({ kind, n }), ragged: { capacity, rows, receivedRows } };
      return { ...request, receivedRows, handle: communicator.start(request) };
    });
    for (const { handle } of started) communicator.wait(handle);
    return {
      outputs: started.flatMap(({ output, receivedRows }) => [output.slice(), receivedRows.slice()]),
      bytesSent: communicator.bytesSent(),
    };
  }
  if (job.name === "priorities") {
    const large = requestOf({ kind: "all-reduce", n: job.large, inPlace: true });
    const small = requestOf({ kind: "all-reduce", n: 16, inPlace: true, priority: 3 });
    // Rank 0 starts the large request last, so that the urgent requests can finish only by overtaking the large request
    // on the other ranks.
    let slow = rank === 0 ? undefined : communicator.start(large);
    for (let i = 0; i < job.small; i++) communicator.wait(communicator.start({ ...small, output: small.output }));
    slow ??= communicator.start(large);
    communicator.wait(slow);
    return { outputs: [large.output.slice(), small.output.slice()], bytesSent: communicator.bytesSent() };
  }
  communicator.wait(communicator.start(requestOf({ kind: "barrier", n: 0 })));
  if (job.name === "disagree") {
    communicator.wait(communicator.start(requestOf(rank === worldSize - 1 ? job.last : job.one)));
    return { outputs: [], bytesSent: 0 }; // the rank had sent all data before any rank detected the failure
  }
  if (rank === worldSize - 1 && job.how === "throw") throw new Error("this rank dies");
  if (rank === worldSize - 1 && job.how === "wait") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (rank === worldSize - 1 && job.how === "never start") return { outputs: [], bytesSent: 0 };
  communicator.wait(communicator.start(requestOf({ kind: "all-reduce", n: 8, inPlace: true })));
  throw new Error("a collective without one rank completed");
};

const attempt = (): Answer => {
  try {
    return run();
  } catch (error) {
    const { code, message, peer } = error as { code?: string; message: string; peer: number };
    if (code === undefined) throw error;
    const communicator = joinWorld(connection); // of an unusable world, so that no settings are compared
    const empty = allocate(0);
    let after = "";
    try {
      communicator.start({ kind: "barrier", dtype: "u8", input: empty, output: empty });
    } catch (second) {
      after = (second as { code: string }).code;
    }
    if (after !== code) throw new Error(`after ${code} the group still took a request (${after})`, { cause: error });
    return { outputs: [], bytesSent: 0, error: { code, message, peer } };
  }
};

parentPort!.postMessage(attempt());
