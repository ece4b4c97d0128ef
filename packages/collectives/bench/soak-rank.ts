import { parentPort, workerData } from "node:worker_threads";
import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import { kinds } from "../src/control-block/tag.ts";
import { joinWorld, type WorldConnection } from "../src/node.ts";
import { closedForm, fromBytes, operand, parametersOf, regionElements, toBytes } from "../test/world.ts";

// One rank of the soak test: starts requests of random kind, size, dtype, group and priority, equal on all ranks, with
// several requests in flight. Each result is checked.

const { connection, address, length, seconds, seed } = workerData as {
  readonly connection: WorldConnection;
  readonly address: number;
  readonly length: number;
  readonly seconds: number;
  readonly seed: number;
};
const { memory } = connection;
const world = joinWorld(connection);
const half = Math.floor(world.worldSize / 2);
const ranks = Array.from({ length: world.worldSize }, (_, rank) => rank);
const groups = [world, world.split([ranks.slice(0, half), ranks.slice(half)], "halves")];

let state = seed;
/** Returns a random integer from 0 to `below` − 1, equal on every rank. */
const random = (below: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
const pick = <T>(values: readonly T[]): T => values[random(values.length)]!;

const dtypes: readonly DType[] = ["f32", "bf16", "i32"];
let next = address;
const allocate = (bytes: number): Uint8Array => {
  const region = new Uint8Array(memory.buffer, next, bytes);
  next += Math.ceil(bytes / 16) * 16;
  if (next > address + length) throw new Error("the soak test needs more memory than a rank has");
  return region;
};

const began = performance.now();
let requests = 0;
let lastReport = began;
const empty = new Uint8Array(memory.buffer, address, 0);
for (;;) {
  next = address;
  const flying = Array.from({ length: 6 }, () => {
    const group = pick(groups);
    const { rank, worldSize } = group;
    const [kind, dtype] = [pick(kinds), pick(dtypes)];
    const n = pick([0, 1, 17, 1000, 65_536, random(20_000)]);
    const priority = random(4);
    const root = random(world.worldSize) % worldSize;
    const counts = regionElements(kind, worldSize, n);
    const parameters = parametersOf(rank, worldSize, n, root);
    const input = allocate(counts.input * bytesPerElement[dtype]);
    input.set(toBytes(operand(rank, counts.input, dtype), dtype));
    const output = allocate(counts.output * bytesPerElement[dtype]).fill(0x55);
    const request: CollectiveRequest = {
      kind,
      dtype,
      input,
      output,
      priority,
      root,
      ...(kind === "send-receive" && { to: parameters.to!, from: parameters.from! }),
    };
    return { group, parameters, handle: group.start(request), ...request };
  });
  for (const { group, handle, kind, dtype, output, parameters } of flying.toReversed()) {
    group.wait(handle);
    const inputs = Array.from({ length: group.worldSize }, (_, rank) =>
      operand(rank, regionElements(kind, group.worldSize, parameters.elementCount).input, dtype),
    );
    const [actual, expected] = [fromBytes(output, dtype), closedForm(kind, parameters, inputs)];
    const wrong = actual.findIndex((value, i) => value !== expected[i]);
    if (wrong >= 0 || actual.length !== expected.length)
      throw new Error(
        `${kind} of ${parameters.elementCount} ${dtype} on rank ${parameters.rank}: element ${wrong} is ${actual[wrong]} instead of ${expected[wrong]}`,
      );
    requests += 1;
  }
  const now = performance.now();
  if (now - lastReport > 15_000) {
    lastReport = now;
    parentPort!.postMessage({ requests, bytesSent: world.bytesSent(), megabytes: process.memoryUsage().rss / 2 ** 20 });
  }
  // Rank 0's clock decides for all ranks.
  const more = new Uint8Array(memory.buffer, address, 16);
  more[0] = world.rank === 0 && now - began > seconds * 1000 ? 1 : 0;
  world.wait(
    world.start({ kind: "broadcast", dtype: "u8", input: more.subarray(0, 1), output: more.subarray(0, 1), root: 0 }),
  );
  if (more[0] === 1) break;
}
world.wait(world.start({ kind: "barrier", dtype: "u8", input: empty, output: empty }));
parentPort!.postMessage({ requests, bytesSent: world.bytesSent(), megabytes: process.memoryUsage().rss / 2 ** 20 });
