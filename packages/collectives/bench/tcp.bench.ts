// Measures an all-reduce of f32 between two processes over TCP on one machine, compared with the throughput of plain
// sockets. Run: node bench/tcp.bench.ts
import { type AddressInfo, connect, createServer } from "node:net";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { measurementLine, summarize } from "@skein/measuring";
import { algorithms } from "../src/algorithms.ts";
import { execute, scratchBytes, wasmArithmetic } from "../src/index.ts";
import { wasmMessageMemory } from "../src/message-memory.ts";
import { crc32cOf } from "../src/wire/folded-crc32c.ts";
import { openWireKernels } from "../src/wire/wire-kernels.ts";
import { exchange, hangUp, openPair, rank } from "./two-processes.ts";

const mebibyte = 2 ** 20;
const sizes = [1, 4, 16, 64];
const say = (line: string): void => void (rank === 0 && console.log(line));

/**
 * Baseline: returns the throughput of plain sockets in bytes per second and direction. The sockets are dialed and read
 * in the same way as the sockets of links, but carry no frames.
 */
const socketRate = async (bothWays: boolean): Promise<number> => {
  const total = 2 ** 31;
  const memory = new Uint8Array(new SharedArrayBuffer(mebibyte));
  const server = createServer({ noDelay: true }, (socket) => {
    let sent = 0;
    const more = (): void => {
      while (sent < total) {
        sent += mebibyte;
        if (!socket.write(memory)) return void socket.once("drain", more);
      }
      socket.end();
    };
    socket.resume();
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = await exchange((server.address() as AddressInfo).port);
  const begin = performance.now();
  if (bothWays || rank === 1) {
    const target = new Uint8Array(new SharedArrayBuffer(mebibyte));
    await new Promise<void>((resolve) => {
      const onread = { buffer: () => target, callback: () => true };
      connect({ host: "127.0.0.1", port, onread }).on("end", resolve);
    });
  }
  await exchange("done");
  const seconds = (performance.now() - begin) / 1000;
  server.close();
  return total / seconds;
};

const kernels = await compileWasm(await detectBuild());
const ring = algorithms.find(({ name }) => name === "ring-all-reduce")!;
const barrier = algorithms.find(({ name }) => name === "dissemination-barrier")!;

for (const bothWays of [false, true])
  say(
    `sockets alone, ${bothWays ? "both ways" : "one way"}: ${((await socketRate(bothWays)) / 1e9).toFixed(2)} GB/s each`,
  );

for (const sums of ["header", "payload"] as const) {
  const sharedMemory = new WebAssembly.Memory({ initial: (64 * mebibyte) / 65_536, maximum: 65_536, shared: true });
  const memory = wasmMessageMemory(sharedMemory);
  const checksum = crc32cOf(openWireKernels({ memory: sharedMemory, messages: memory }));
  const turn = (call: () => void): void => void setImmediate(call);
  const world = await openPair({ link: { sums, checksum }, memory, turn });
  const arithmetic = wasmArithmetic(kernels, sharedMemory);
  const transport = world.transports[0]!;
  const empty = new Uint8Array(0);
  let tag = 0;

  for (const size of sizes) {
    const bytes = size * mebibyte;
    // Segments of 1 MiB stay in the L2 cache from the socket to the sum and back.
    const segments = Math.max(1, size / 2);
    const schedule = ring.schedule({ rank, worldSize: 2, elementCount: bytes / 4, segments });
    const region = new Uint8Array(sharedMemory.buffer, 0, bytes);
    const values = new Float32Array(sharedMemory.buffer, 0, bytes / 4);
    const scratch = memory.take(scratchBytes(schedule, "f32"));
    const allReduce = (): Promise<void> =>
      execute(schedule, { input: region, output: region, scratch, dtype: "f32", tag: ++tag }, transport, arithmetic);
    const wait = (): Promise<void> =>
      execute(
        barrier.schedule({ rank, worldSize: 2, elementCount: 0 }),
        { input: empty, output: empty, dtype: "u8", tag: ++tag },
        transport,
        arithmetic,
      );

    for (let i = 0; i < values.length; i++) values[i] = (i % 7) + rank;
    await allReduce();
    const wrong = values.findIndex((value, i) => value !== (i % 7) * 2 + 1);
    if (wrong >= 0) throw new Error(`element ${wrong} of ${values.length} is ${values[wrong]}`);
    values.fill(0);
    for (let i = 0; i < 5; i++) await allReduce();
    const times: number[] = [];
    for (let i = 0; i < Math.max(15, 256 / size); i++) {
      await wait();
      const begin = performance.now();
      await allReduce();
      times.push(performance.now() - begin);
    }
    const best = Math.min(...times);
    say(
      measurementLine(
        `all-reduce ${size} MiB, sums over ${sums}, ${segments} segments`,
        { ...summarize(times), best },
        { amount: bytes, unit: "B" },
      ),
    );
  }
  await world.close();
  await exchange("closed");
}
hangUp();
