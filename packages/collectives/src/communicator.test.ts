import type { CollectiveRequest } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import { controlBytes, queueLength } from "./control-block/layout.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import { createCommunicator } from "./communicator.ts";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 64, shared: true });
const connection = (worldSize: number, rank = 0): WorldConnection => ({
  control: new SharedArrayBuffer(controlBytes(worldSize)),
  memory,
  kernels: "none",
  rank,
  worldSize,
  localRanks: Array.from({ length: worldSize }, (_, local) => local),
  companionOnly: false,
  timeoutMilliseconds: 1000,
  spins: 0,
  preference: {},
});
const region = (address: number, bytes: number): Uint8Array => new Uint8Array(memory.buffer, address, bytes);

test.each<[string, Partial<CollectiveRequest>, RegExp]>([
  [
    "an input in other memory",
    { input: new Uint8Array(32) },
    /32 bytes is outside the world's WebAssembly memory; allocate it there/,
  ],
  [
    "half an element",
    { input: region(0, 30), output: region(0, 30) },
    /30 bytes are not a whole number of f32 elements/,
  ],
  [
    "a dtype without sums",
    { dtype: "bool" },
    /dtype bool cannot be reduced, it takes f32, f16, bf16, i32, u32; cast it first/,
  ],
  ["other lengths", { output: region(64, 16) }, /an input of 32 bytes does not fit an output of 16 on 3 ranks/],
  [
    "all-gather of one rank's length",
    { kind: "all-gather", output: region(64, 32) },
    /32 bytes does not fit an output of 32 on 3 ranks/,
  ],
  [
    "all-to-all in unequal chunks",
    { kind: "all-to-all", output: region(64, 32) },
    /32 bytes cannot be split into 3 equal chunks of f32/,
  ],
  [
    "an overlap",
    { output: region(16, 32) },
    /input and output overlap; only all-reduce, broadcast, reduce may work in place/,
  ],
  ["an in-place send-receive", { kind: "send-receive", to: 1, from: 2 }, /input and output overlap/],
  ["a root outside", { kind: "broadcast", root: 3 }, /root 3 is not a rank; use 0 to 2/],
  [
    "half a message to the rank itself",
    { kind: "send-receive", to: 0, from: 1, output: region(64, 32) },
    /rank 0 sends to 0 and receives from 1; a message to the rank itself needs both/,
  ],
  ["an invalid priority", { priority: 4 }, /priority 4 is not one of 0 to 3, the highest/],
  [
    "a ragged sum",
    { ragged: { capacity: 1, rows: region(64, 4), receivedRows: region(128, 12) } },
    /cannot be ragged; only all-to-all and all-gather can/,
  ],
  [
    "rows that do not fill a chunk",
    {
      kind: "all-gather",
      output: region(64, 96),
      ragged: { capacity: 3, rows: region(256, 4), receivedRows: region(320, 12) },
    },
    /a chunk of 32 bytes cannot be split into 3 rows of f32/,
  ],
  [
    "counts of another world",
    {
      kind: "all-gather",
      output: region(64, 96),
      ragged: { capacity: 4, rows: region(256, 4), receivedRows: region(320, 8) },
    },
    /row counts have 4 and 8 bytes; i32 counts for 3 ranks have 4 and 12/,
  ],
])("rejects %s before anything is sent", (_, change, message) => {
  const communicator = createCommunicator(connection(3));
  expect(() =>
    communicator.start({ kind: "all-reduce", dtype: "f32", input: region(0, 32), output: region(0, 32), ...change }),
  ).toThrow(message);
});

test("recognizes regions of a memory before and after its growth, even if two of its buffers have the same length", () => {
  const communicator = createCommunicator(connection(1));
  const growing = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true });
  const own = createCommunicator({ ...connection(1), memory: growing });
  const region = (at: number): Uint8Array => new Uint8Array(growing.buffer, at, 32);
  const request = { kind: "all-gather", dtype: "f32" } as const;
  const regions = [region(64)];
  // Growth in another thread replaces the buffer. The new buffer has the same length if this thread has also grown the
  // memory since.
  for (const pages of [0, 1, 0]) {
    growing.grow(pages);
    regions.push(region(64 * (regions.length + 1)));
  }
  for (const input of regions)
    for (const output of regions)
      if (input !== output) expect(() => own.start({ ...request, input, output })).not.toThrow();
  // Another memory: at an offset with the same bytes, or with the same bytes except the flipped bit.
  for (const byte of [0, 1]) {
    const elsewhere = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const input = new Uint8Array(elsewhere.buffer, 512, 32);
    input[0] = byte;
    expect(() => own.start({ ...request, input, output: region(64) })).toThrow(
      /is outside the world's WebAssembly memory/,
    );
    expect(input[0]).toBe(byte);
    expect(() => communicator.start({ ...request, input, output: region(64) })).toThrow(/is outside/);
  }
  expect(regions.every((bytes) => bytes.every((value) => value === 0))).toBe(true);
});

test.each([
  [
    "a rank twice",
    [
      [0, 1],
      [1, 2],
    ],
  ],
  ["a rank left out", [[0], [1]]],
  [
    "a rank of another world",
    [
      [0, 1],
      [2, 3],
    ],
  ],
])("rejects a partition with %s", (_, partition) => {
  expect(() => createCommunicator(connection(3)).split(partition, "data")).toThrow(
    /is not a partition of 3 ranks; name each of 0 to 2 once/,
  );
});

test("rejects more groups than a world supports", () => {
  const communicator = createCommunicator(connection(1));
  for (let group = 1; group < 16; group++) communicator.split([[0]], `axis ${group}`);
  expect(() => communicator.split([[0]], "one more")).toThrow(
    /a world has at most 15 groups; split once for each mesh axis/,
  );
});

test("executes a request in the waiting thread, without a companion", () => {
  const communicator = createCommunicator(connection(1));
  new Float32Array(memory.buffer, 0, 8).set([1, 2, 3, 4, 5, 6, 7, 8]);
  communicator.wait(
    communicator.start({ kind: "all-reduce", dtype: "f32", input: region(0, 32), output: region(64, 32) }),
  );
  expect([...new Float32Array(memory.buffer, 64, 8)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(communicator.bytesSent()).toBe(0);
});

test("names a missing peer after the timeout, and again in every later call", () => {
  const communicator = createCommunicator({ ...connection(2), timeoutMilliseconds: 50 });
  const request: CollectiveRequest = { kind: "all-reduce", dtype: "f32", input: region(0, 32), output: region(0, 32) };
  const handle = communicator.start(request);
  for (let again = 0; again < 2; again++)
    expect(() => communicator.wait(handle)).toThrow(/rank 1 did not join all-reduce #1 within 50 ms/);
  expect(() => communicator.start(request)).toThrow(/the group is unusable now/);
});

test("returns the algorithm of a request after its wait, until its slot in the queue is reused", () => {
  const communicator = createCommunicator(connection(1));
  const request = { dtype: "f32", input: region(0, 32), output: region(64, 32) } as const;
  const begin = (kind: "all-reduce" | "all-gather"): ReturnType<typeof communicator.start> => {
    const handle = communicator.start({ ...request, kind });
    communicator.wait(handle);
    return handle;
  };
  const [first, second] = [begin("all-reduce"), begin("all-gather")];
  expect([first, second].map((handle) => communicator.algorithmOf?.(handle))).toEqual([
    "direct-all-reduce",
    "direct-all-gather",
  ]);
  for (let i = 0; i < queueLength - 1; i++) begin("all-gather");
  expect([first, second].map((handle) => communicator.algorithmOf?.(handle))).toEqual([undefined, "direct-all-gather"]);
});
