// One rank of the tests: runs the jobs named by its arguments, and prints "RESULT" with a JSON object for each job.
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import {
  type Algorithm,
  execute,
  createMemoryWorld,
  type ScheduleParameters,
  plainArithmetic,
  reducible,
  scratchBytes,
  type Transport,
} from "@skein/collectives";
import { algorithms } from "@skein/collectives/algorithms";
import { heapMessageMemory, combiningKinds, inPlaceKinds } from "@skein/collectives/transport";
import { bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import type { CollectiveKind, CollectiveRequest } from "@skein/tensor-core/backend";
import { mpiExchange } from "../src/exchange.ts";
import { openLanes } from "../src/lane.ts";
import { MpiTransport } from "../src/mpi-transport.ts";
import { nativeCollectives } from "../src/native-collectives.ts";
import { openMpi } from "../src/node.ts";
import { canonical, operand, regionElements, sharedBytes } from "./operands.ts";

interface Ask {
  readonly algorithm: Algorithm;
  readonly n: number;
  readonly dtype?: DType;
  readonly reduction?: Reduction;
  readonly place?: Partial<ScheduleParameters>;
  readonly exact?: boolean;
}

const names = process.argv.slice(2);
let job = "";
const world = await openMpi();
const { rank, size } = world;
const memory = heapMessageMemory();
const report = (result: unknown): void =>
  void process.stdout.write(`RESULT ${JSON.stringify({ rank, job, ...(result as object) })}\n`);
const nameOf = (tag: number): string => `collective ${tag}`;
const codeOf = (error: unknown): string => (error as { code: string }).code;
const equal = (a: Uint8Array, b: Uint8Array, dtype: DType): boolean =>
  Buffer.compare(canonical(a, dtype), canonical(b, dtype)) === 0;

const run = async (
  { algorithm, n, dtype = "f32", reduction = "sum", place = {}, exact }: Ask,
  transport: Transport,
  tag: number,
): Promise<Uint8Array> => {
  const { rank: me, worldSize } = transport;
  const counts = regionElements(algorithm.kind, worldSize, n);
  const neighbours = { to: (me + 1) % worldSize, from: (me + worldSize - 1) % worldSize };
  const schedule = algorithm.schedule({
    rank: me,
    worldSize,
    elementCount: n,
    root: worldSize - 1,
    ...neighbours,
    ...place,
  });
  const output = sharedBytes(counts.output * bytesPerElement[dtype]);
  const scratch = sharedBytes(scratchBytes(schedule, dtype));
  await execute(
    schedule,
    { input: operand(me, counts.input, dtype, exact), output, scratch, dtype, reduction, tag },
    transport,
    plainArithmetic(),
  );
  return output;
};

/** Returns the expected output of this rank, computed by a world within this process. */
const reference = async (ask: Ask): Promise<Uint8Array> =>
  (await Promise.all(createMemoryWorld(size).map((transport) => run(ask, transport, 1))))[rank]!;

const everyAlgorithm = async (limit?: number): Promise<void> => {
  const [lane] = await openLanes(world, 1, 20_000, nameOf);
  const transport = new MpiTransport(lane!, memory, limit);
  const wrong: string[] = [];
  let tag = 0;
  const half = Math.ceil(size / 2);
  const places: Partial<ScheduleParameters>[] = [
    {},
    {
      hosts: [Array.from({ length: half }, (_, i) => i), Array.from({ length: size - half }, (_, i) => half + i)],
      segments: 3,
    },
  ];
  for (const algorithm of algorithms) {
    for (const place of places) {
      for (const n of new Set([0, 1, size - 1, size, 53])) {
        for (const dtype of ["f32", "f16", "i32", "u8"] as const) {
          if (combiningKinds.has(algorithm.kind) && !reducible.has(dtype)) continue;
          const ask = { algorithm, n, dtype, place };
          tag += 1;
          if (!equal(await run(ask, transport, tag), await reference(ask), dtype))
            wrong.push(`${algorithm.name} of ${n} ${dtype}`);
        }
      }
    }
  }
  report({ wrong, tested: tag });
};

const everyNative = async (by: "exchange" | "MPI", limit?: number): Promise<void> => {
  const lanes = await openLanes(world, 1, 20_000, nameOf);
  const native =
    by === "MPI" ? nativeCollectives(lanes, limit) : mpiExchange({ lanes, memory, arithmetic: plainArithmetic() });
  const wrong: string[] = [];
  const kinds: CollectiveKind[] = [
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "barrier",
  ];
  let tested = 0;
  for (const kind of kinds) {
    const algorithm = algorithms.find((candidate) => candidate.kind === kind)!;
    for (const dtype of ["f32", "f16", "bf16", "i32", "u32", "u8", "bool"] as const) {
      const reduces = combiningKinds.has(kind);
      if (reduces && !reducible.has(dtype)) continue;
      for (const reduction of reduces ? (["sum", "max", "min"] as const) : (["sum"] as const)) {
        // On more than two ranks, MPI chooses the order of sums.
        const exact = by === "MPI" && reduces && reduction === "sum" && size > 2;
        for (const n of [0, 1, 7, 1009]) {
          const counts = regionElements(kind, size, n);
          const input = operand(rank, counts.input, dtype, exact);
          const output = sharedBytes(counts.output * bytesPerElement[dtype]);
          const request: CollectiveRequest = { kind, dtype, reduction, input, output, root: size - 1 };
          const expected = await reference({ algorithm, n, dtype, reduction, exact });
          if (!native.covers(request)) {
            if (by === "MPI" && limit === undefined) wrong.push(`${kind} is not covered`);
            continue;
          }
          await native.run(request, 0, tested, () => kind);
          tested += 1;
          if (!equal(output, expected, dtype)) wrong.push(`${kind} ${reduction} of ${n} ${dtype}`);
          if (!inPlaceKinds.has(kind)) continue;
          const inPlace = operand(rank, counts.input, dtype, exact);
          await native.run({ ...request, input: inPlace, output: inPlace }, 0, 0, () => kind);
          if (!equal(inPlace, expected, dtype)) wrong.push(`${kind} ${reduction} of ${n} ${dtype} in place`);
        }
      }
    }
  }
  report({ wrong, tested });
};

/** Tests collectives on all lanes at the same time. Each rank begins with a different lane. */
const allLanes = async (): Promise<void> => {
  const lanes = await openLanes(world, 4, 20_000, nameOf);
  const native = nativeCollectives(lanes);
  const algorithm = algorithms.find(({ name }) => name === "ring-all-reduce")!;
  const expected = await reference({ algorithm, n: 5000 });
  const wrong: string[] = [];
  let tested = 0;
  const serve = async (index: number): Promise<void> => {
    const transport = new MpiTransport(lanes[index]!, memory);
    for (let turn = 1; turn <= 20; turn++) {
      if (!equal(await run({ algorithm, n: 5000 }, transport, turn), expected, "f32"))
        wrong.push(`lane ${index}, turn ${turn}`);
      const words = Int32Array.of(rank, index, turn);
      const bytes = new Uint8Array(words.buffer);
      await native.run({ kind: "all-reduce", dtype: "i32", input: bytes, output: bytes }, index, 0, () => "all-reduce");
      if (words[0] !== (size * (size - 1)) / 2 || words[2] !== size * turn)
        wrong.push(`lane ${index}, native turn ${turn}`);
      tested += 1;
    }
  };
  await Promise.all([0, 1, 2, 3].map((i) => serve((i + rank) % 4)));
  report({ wrong, tested });
};

/** Tests lent memory: rank 0 overwrites sent memory as soon as it is released; rank 1 receives late. */
const lentMemory = async (): Promise<void> => {
  const [lane] = await openLanes(world, 1, 20_000, nameOf);
  const transport = new MpiTransport(lane!, memory);
  const wrong: string[] = [];
  const bytes = sharedBytes(2 ** 21); // Large, so that MPI does not copy it.
  for (const value of [1, 2, 3]) {
    if (rank === 0) {
      bytes.fill(value);
      await transport.whenSent(transport.send(1, value, bytes));
      bytes.fill(0x7f);
    } else if (rank === 1) {
      await sleep(100);
      await transport.receiveInto(0, value, bytes);
      if (bytes.some((byte) => byte !== value)) wrong.push(`message ${value}`);
    }
  }
  report({ wrong, tested: 3 });
};

/**
 * Tests mismatches: rank 0 sends messages that rank 1 does not expect. Each case has a separate lane, because the lane
 * is unusable afterwards.
 */
const disagree = async (): Promise<void> => {
  const cases = [
    { sent: 40, expected: 36, tag: 5 },
    { sent: 36, expected: 40, tag: 5 },
    { sent: 40, expected: 40, tag: 6 },
    { sent: 64, expected: 100, tag: 5 }, // As long as its first part.
    { sent: 100, expected: 64, tag: 5 },
    { sent: 200_000, expected: 100_000, tag: 5, limit: 2 ** 20 },
  ];
  const lanes = await openLanes(world, cases.length + 2, 5000, nameOf);
  const errors: unknown[] = [];
  for (const [index, { sent, expected, tag, limit = 64 }] of cases.entries()) {
    const transport = new MpiTransport(lanes[index]!, memory, limit);
    if (rank === 0) transport.send(1, 5, sharedBytes(sent));
    else if (rank === 1) {
      const received = Promise.resolve(transport.receive(0, tag, expected));
      const error = (await received.catch((reason: unknown) => reason)) as {
        code: string;
        message: string;
      };
      let later: unknown;
      try {
        transport.send(0, 9, sharedBytes(4));
      } catch (second) {
        later = second;
      }
      errors.push({ code: error.code, message: error.message, sameLater: later === error });
    }
  }
  const bytes = sharedBytes(rank === 0 ? 40 : 36);
  const native = Promise.resolve(
    nativeCollectives(lanes).run(
      { kind: "all-reduce", dtype: "f32", input: bytes, output: bytes },
      cases.length,
      0,
      () => "all-reduce #1",
    ),
  );
  const error = (await native.catch((reason: unknown) => reason)) as Error;
  const exchange = mpiExchange({ lanes, memory, arithmetic: plainArithmetic() });
  const exchanged = Promise.resolve(
    exchange.run({ kind: "all-reduce", dtype: "f32", input: bytes, output: bytes }, cases.length + 1, 3, nameOf),
  );
  const second = (await exchanged.catch((reason: unknown) => reason)) as Error;
  report({
    errors,
    native: `${codeOf(error)}: ${error.message}`,
    exchanged: `${codeOf(second)}: ${second.message}`,
  });
  await world.barrier();
  process.exit(0); // Messages that were not received stay in flight, so MPI cannot be closed.
};

const late = async (): Promise<void> => {
  const lanes = await openLanes(world, 3, 300, nameOf);
  const errors: string[] = [];
  const words = sharedBytes(64);
  if (rank === 0) {
    const transport = new MpiTransport(lanes[0]!, memory);
    await Promise.resolve(transport.receiveInto(1, 7, words)).catch((error: unknown) =>
      errors.push(`${codeOf(error)}: ${(error as Error).message}`),
    );
    const native = nativeCollectives(lanes);
    await Promise.resolve(
      native.run({ kind: "all-reduce", dtype: "f32", input: words, output: words }, 1, 0, () => "all-reduce #3"),
    ).catch((error: unknown) => {
      errors.push(`${codeOf(error)}: ${(error as Error).message}`);
    });
    const exchange = mpiExchange({ lanes, memory, arithmetic: plainArithmetic() });
    await Promise.resolve(
      exchange.run({ kind: "all-reduce", dtype: "f32", input: words, output: words }, 2, 9, nameOf),
    ).catch((error: unknown) => {
      errors.push(`${codeOf(error)}: ${(error as Error).message}`);
    });
    await world.finalize().catch((error: unknown) => errors.push(`${codeOf(error)}: ${(error as Error).message}`));
    report({ errors });
    await world.abort(5);
  }
  await sleep(60_000);
};

/**
 * Tests the termination of a worker that has also opened MPI: while the worker awaits a message, or while MPI uses its
 * memory.
 */
const endedWorker = async (underWay: boolean): Promise<void> => {
  const worker = new Worker(new URL("./joining-worker.ts", import.meta.url), {
    workerData: { underWay, peer: (rank + 1) % size },
  });
  const seen = await new Promise((resolve) => worker.once("message", resolve));
  await world.barrier();
  await worker.terminate();
  const after = await world.barrier().then(
    () => "goes on",
    (error: unknown) => codeOf(error),
  );
  report({ seen, after });
  if (underWay) process.exit(0);
};

const idle = async (): Promise<void> => {
  await world.barrier();
  await sleep(100);
  const before = process.cpuUsage();
  await sleep(1000);
  const { user, system } = process.cpuUsage(before);
  report({ busyShare: (user + system) / 1e6 });
};

const jobs: Readonly<Record<string, () => Promise<void>>> = {
  algorithms: () => everyAlgorithm(),
  "small parts": () => everyAlgorithm(24),
  exchange: () => everyNative("exchange"),
  native: () => everyNative("MPI"),
  "native in small parts": () => everyNative("MPI", 100),
  lanes: allLanes,
  "lent memory": lentMemory,
  disagree,
  late,
  "ended while awaiting": () => endedWorker(false),
  "ended while sending": () => endedWorker(true),
  idle,
  exit: async () => {
    if (rank === size - 1) process.exit(7);
    await world.barrier();
  },
  killed: async () => {
    if (rank === size - 1) process.kill(process.pid, "SIGKILL");
    await world.barrier();
  },
};
for (const name of names) {
  job = name;
  await jobs[name]!();
}
await world.finalize();
