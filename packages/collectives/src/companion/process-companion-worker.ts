import { parentPort, workerData } from "node:worker_threads";
import type { ErrorKind } from "@skein/tensor-core";
import type { LossKind } from "../errors.ts";
import { wasmMessageMemory } from "../message-memory.ts";
import { openFineClock } from "../network/fine-clock.ts";
import { codesThatPay, frameCodec } from "../network/frame-codec.ts";
import { defaultFlow } from "../network/flow.ts";
import type { LinkCodec } from "../network/link.ts";
import { emulatedLinks } from "../network/emulated-links.ts";
import { type NetworkWorld, networkWorld } from "../network/network-transport.ts";
import { listenByTcp } from "../network/tcp.ts";
import { listenByTls } from "../network/tls.ts";
import type { CompanionInput, CompanionNews, CompanionOrder } from "./companion-messages.ts";
import { isLoopback } from "../security/loopback.ts";
import { ControlBlock } from "../control-block/control-block.ts";
import { laneCount } from "../control-block/layout.ts";
import type { Preference } from "../control-block/world-connection.ts";
import { crc32cOf } from "../wire/folded-crc32c.ts";
import { hasOwnCore } from "../own-core.ts";
import { losslessCodec } from "../wire/lossless-codec.ts";
import { openWireKernels, type WireKernels } from "../wire/wire-kernels.ts";
import { serveRequests } from "./serve-requests.ts";
import { hybridTransport } from "../transport/hybrid-transport.ts";
import { ThreadTransport } from "../transport/thread-transport.ts";

// Entry of the companion thread of a rank in a world of several processes; `createProcessWorld` starts it. It holds the
// rank's sockets.

const post = (news: CompanionNews): void => parentPort!.postMessage(news);

/** Orders, one after the other, and those that may come at any time. */
const orders = (
  onLost: (rank: number, reason: string, kind: LossKind) => void,
  onEnd: () => void,
): Promise<Extract<CompanionOrder, { type: "connect" }> | undefined> =>
  new Promise((resolve) => {
    parentPort!.on("message", (order: CompanionOrder) => {
      if (order.type === "connect") resolve(order);
      else if (order.type === "lost") onLost(order.rank, order.reason, order.kind);
      else {
        onEnd();
        resolve(undefined);
      }
    });
  });

/** The codec of this rank's links. All ranks understand coded frames; whether to send them is each one's own choice. */
const codecOf = (
  { codec: when = "auto", emulate }: CompanionInput,
  { link }: Preference,
  kernels: WireKernels,
): LinkCodec => {
  const codec = losslessCodec(kernels);
  if (when !== "auto") return frameCodec(codec, () => when === "always");
  const known = emulate?.bytesPerSecond ?? (link && 1 / link.across.secondsPerByte);
  return frameCodec(codec, codesThatPay(codec, defaultFlow.frameBytes, known));
};

const run = async (input: CompanionInput): Promise<void> => {
  const { connection, job, build, secret, tls, listen, insecure, links: settings = {}, emulate, heartbeat } = input;
  const { rank, worldSize, memory, timeoutMilliseconds, localRanks } = connection;
  const control = new ControlBlock(connection);
  const messages = wasmMessageMemory(memory);
  const kernels = openWireKernels({ memory, messages });
  const listener = await (tls === undefined ? listenByTcp : listenByTls)({
    rank,
    worldSize,
    job,
    build,
    tls: tls!,
    onNote: (line: string) => post({ type: "note", line }),
    secret,
    checksum: crc32cOf(kernels),
    lanes: laneCount,
    ...(listen !== undefined && { host: listen }),
    ...(insecure !== undefined && { insecure }),
    ...(settings.socketsPerPair !== undefined && { socketsPerPair: settings.socketsPerPair }),
    // Loopback has no cable to damage anything, but what stands between two ends of it may have one.
    ...(settings.checksum === undefined && tls === undefined && isLoopback(listen ?? "127.0.0.1")
      ? { sums: "unless-direct" }
      : {}),
    ...(settings.checksum !== undefined && { sums: settings.checksum }),
  });
  const linked: { world?: NetworkWorld } = {};
  const ordered = orders(
    (lost, reason, kind) => linked.world?.reportLost(lost, reason, kind),
    () => control.close(),
  );
  post({ type: "listening", address: { host: listener.host, port: listener.port } });
  const order = await ordered;
  if (order === undefined) return listener.close();
  const links = await listener.connect(order.peers);
  const turn = hasOwnCore(order.preference, rank) ? (call: () => void): void => void setImmediate(call) : undefined;
  const clock = emulate && openFineClock();
  const world = networkWorld({
    rank,
    worldSize,
    lanes: laneCount,
    links: clock === undefined ? links : emulatedLinks(links, { direction: () => emulate, seed: rank, clock }),
    memory: messages,
    timeoutMilliseconds,
    heartbeat,
    codec: codecOf(input, order.preference, kernels),
    nameOf: (tag) => control.nameOf(tag),
    ...(turn && { turn }),
  });
  linked.world = world;
  world.onFailure((error) => control.failWith(error, 0));
  post({ type: "connected" });
  const isLocal = (peer: number): boolean => localRanks.includes(peer);
  try {
    await serveRequests(
      { ...connection, preference: order.preference },
      {
        transports: world.transports.map((transport, lane) =>
          localRanks.length === 1
            ? transport
            : hybridTransport(new ThreadTransport(control, memory, lane), transport, isLocal),
        ),
        memory: messages,
      },
      turn,
    );
  } finally {
    await world.close();
    await clock?.close();
  }
};

run(workerData as CompanionInput)
  .catch((error: unknown) => {
    const { kind = "invariant", code = "internal" } = error as { kind?: ErrorKind; code?: string };
    post({ type: "failed", kind, code, message: (error as Error).message });
  })
  .finally(() => parentPort!.close());
