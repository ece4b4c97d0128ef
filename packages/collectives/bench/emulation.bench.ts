// Measures how closely emulated links match their settings, in real time over TCP between two processes. Run: node
// bench/emulation.bench.ts
import { median } from "@skein/measuring";
import { emulatedLinks } from "../src/network/emulated-links.ts";
import { openFineClock } from "../src/network/fine-clock.ts";
import type { NetworkWorld } from "../src/network/network-transport.ts";
import { headerBytes } from "../src/wire/frame.ts";
import { exchange, hangUp, openPair, type PairOptions, rank } from "./two-processes.ts";

const settings = [
  { bytesPerSecond: 12.5e6, latencySeconds: 0.02 }, // Home Internet connection.
  { bytesPerSecond: 125e6, latencySeconds: 0.001 }, // Two buildings.
  { bytesPerSecond: 125e6, latencySeconds: 0.000_2 }, // 1 Gbit/s Ethernet.
  { bytesPerSecond: 1.25e9, latencySeconds: 0.000_2 }, // 10 Gbit/s Ethernet.
];
const sizes = [1024, 65_536, 1_048_576, 16_777_216];
const allowed = 0.05;
// Small frames, because the transfer time of the last frame on the real link adds to the measured time.
const pair: PairOptions = {
  link: { frameBytes: 65_536, sums: "header" },
  frameBytes: 65_536,
  turn: (call) => void setImmediate(call),
  pollMilliseconds: 100,
};

/**
 * Returns the median time of a round trip in seconds: a message of `size` bytes to rank 1, and an empty message back.
 */
const thereAndBack = async ({ transports }: NetworkWorld, size: number, samples = 21): Promise<number> => {
  const transport = transports[0]!;
  const bytes = new Uint8Array(size);
  const times: number[] = [];
  for (let tag = 1; tag <= samples; tag++) {
    const begin = performance.now();
    if (rank === 1) await transport.receiveInto(0, tag, bytes);
    const handle = transport.send(1 - rank, tag, rank === 0 ? bytes : new Uint8Array(0));
    if (rank === 0) await transport.receiveInto(1, tag, new Uint8Array(0));
    times.push((performance.now() - begin) / 1000);
    await transport.whenSent(handle);
  }
  return median(times);
};

const clock = openFineClock();
const plain = await openPair({ ...pair, wrap: (links) => emulatedLinks(links, { direction: () => ({}), clock }) });
await thereAndBack(plain, 0, 2000); // Warm-up, so that the code is compiled.
const measured = (await thereAndBack(plain, 0, 200)) / 2;
const peerLatencySeconds = await exchange(measured);
const ownLatencySeconds = rank === 0 ? measured : peerLatencySeconds; // Both sides subtract the same latency.
await plain.close();
await exchange("closed");
if (rank === 0) console.log(`the link itself: ${(ownLatencySeconds * 1e6).toFixed(0)} µs`);

let outside = 0;
for (const setting of settings) {
  const world = await openPair({
    ...pair,
    wrap: (links) => emulatedLinks(links, { direction: () => setting, clock, ownLatencySeconds }),
  });
  for (const size of sizes) {
    const seen = await thereAndBack(world, size);
    if (rank === 1) continue;
    const headers = (Math.ceil(size / 65_536) + 1) * headerBytes;
    const expected = 2 * setting.latencySeconds + (size + headers) / setting.bytesPerSecond;
    const off = seen / expected - 1;
    if (Math.abs(off) > allowed) outside += 1;
    const place = `${(setting.bytesPerSecond / 1e6).toFixed(1)} MB/s, ${(setting.latencySeconds * 1e3).toFixed(1)} ms`;
    const [took, set] = [seen, expected].map((seconds) => (seconds * 1e3).toFixed(3).padStart(9));
    console.log(
      `${place.padStart(20)}: ${String(size).padStart(8)} bytes ${took} ms, set ${set} ms (${(100 * off).toFixed(1)} %)`,
    );
  }
  await world.close();
  await exchange("closed");
}
if (rank === 0) console.log(`${outside} of ${settings.length * sizes.length} are off by more than ${100 * allowed} %`);
await clock.close();
hangUp();
