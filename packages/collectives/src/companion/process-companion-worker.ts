import { parentPort, workerData } from "node:worker_threads";
import type { ErrorKind } from "@skein/tensor-core";
import type { LossKind } from "../errors.ts";
import { wasmMessageMemory } from "../message-memory.ts";
import { openFineClock } from "../network/fine-clock.ts";
import { codesThatPay, frameCodec } from "../network/frame-codec.ts";
import { defaultFlow } from "../network/flow.ts";
import type { LinkCodec } from "../network/link.ts";
import { emulatedLinks } from "../network/emulated-links.ts";
import { type NetworkWorld, createNetworkWorld } from "../network/network-transport.ts";
import { listenByTcp } from "../network/tcp.ts";
import { listenByTls } from "../network/tls.ts";
import type { CompanionInput, CompanionEvent, CompanionCommand } from "./companion-messages.ts";
import { isLoopback } from "../security/loopback.ts";
import { ControlBlock } from "../control-block/control-block.ts";
import { ExpressWords } from "../control-block/express-words.ts";
import { RanksDisagreeError } from "../errors.ts";
import type { LinkListener } from "../network/link-listener.ts";
import { laneCount } from "../control-block/layout.ts";
import type { Preference } from "../control-block/world-connection.ts";
import { crc32cOf } from "../wire/folded-crc32c.ts";
import { hasOwnCore } from "../own-core.ts";
import { losslessCodec } from "../wire/lossless-codec.ts";
import { openWireKernels, type WireKernels } from "../wire/wire-kernels.ts";
import { serveRequests } from "./serve-requests.ts";
import { hybridTransport } from "../transport/hybrid-transport.ts";
import { ThreadTransport } from "../transport/thread-transport.ts";

// Entry point of the companion thread of a rank in a world of several processes, started by `createProcessWorld`. The
// companion owns the rank's sockets.

/**
 * Maximum time to wait until the rank's compute thread has returned from its socket calls. The calls normally return
 * much sooner.
 */
const closingMilliseconds = 1000;

const post = (event: CompanionEvent): void => parentPort!.postMessage(event);

/**
 * Returns the connect command, or undefined if the companion ends before the command arrives. Calls a callback for each
 * other command, which may arrive at any time.
 */
const commands = (
  onLost: (rank: number, reason: string, kind: LossKind) => void,
  onEnd: () => void,
): Promise<Extract<CompanionCommand, { type: "connect" }> | undefined> =>
  new Promise((resolve) => {
    parentPort!.on("message", (command: CompanionCommand) => {
      if (command.type === "connect") resolve(command);
      else if (command.type === "lost") onLost(command.rank, command.reason, command.kind);
      else {
        onEnd();
        resolve(undefined);
      }
    });
  });

/**
 * Returns the lossless codec of this rank's links. All ranks can decode coded frames; each rank decides for itself
 * whether to encode.
 */
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

/**
 * Closes the express connections of the rank's compute thread. Waits until the compute thread no longer uses the
 * connections, at most `closingMilliseconds`.
 */
const closeExpressSockets = async ({ expressSockets }: LinkListener, words: ExpressWords): Promise<void> => {
  const deadline = performance.now() + closingMilliseconds; // A terminated thread never releases the connections.
  while (!words.tryClose() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 1));
  for (const socket of expressSockets) socket.close();
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
    handsOver: tls === undefined && emulate === undefined && input.codec !== "always" && process.platform !== "win32",
    ...(settings.socketsPerPair !== undefined && { socketsPerPair: settings.socketsPerPair }),
    // A loopback link does not corrupt data, but a proxy or tunnel between its two ends may use a network that corrupts
    // data.
    ...(settings.checksum === undefined && tls === undefined && isLoopback(listen ?? "127.0.0.1")
      ? { sums: "unless-direct" }
      : {}),
    ...(settings.checksum !== undefined && { sums: settings.checksum }),
  });
  const linked: { world?: NetworkWorld } = {};
  const commanded = commands(
    (lost, reason, kind) => linked.world?.reportLost(lost, reason, kind),
    () => control.close(),
  );
  post({ type: "listening", address: { host: listener.host, port: listener.port } });
  const command = await commanded;
  if (command === undefined) return listener.close();
  const links = await listener.connect(command.peers);
  const words = new ExpressWords(control);
  const turn = hasOwnCore(command.preference, rank) ? (call: () => void): void => void setImmediate(call) : undefined;
  const clock = emulate && openFineClock();
  const world = createNetworkWorld({
    rank,
    worldSize,
    lanes: laneCount,
    links: clock === undefined ? links : emulatedLinks(links, { direction: () => emulate, seed: rank, clock }),
    memory: messages,
    timeoutMilliseconds,
    heartbeat,
    codec: codecOf(input, command.preference, kernels),
    nameOf: (tag) => control.nameOf(tag),
    expressWait: () => words.waiting,
    ...(turn && { turn }),
  });
  linked.world = world;
  world.onFailure((error) => control.failWith(error, 0));
  post({
    type: "connected",
    express: listener.expressSockets.map(({ peer, fd, headerOnly }) => ({ peer, fd, headerOnly })),
  });
  const isLocal = (peer: number): boolean => localRanks.includes(peer);
  try {
    await serveRequests(
      { ...connection, preference: command.preference },
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
  } catch (error) {
    // The rank's compute thread detected the disagreement; report it to the other ranks.
    if (error instanceof RanksDisagreeError) world.disagree(error);
    throw error;
  } finally {
    await world.close();
    await clock?.close();
    await closeExpressSockets(listener, words);
  }
};

run(workerData as CompanionInput)
  .catch((error: unknown) => {
    const { kind = "invariant", code = "internal" } = error as { kind?: ErrorKind; code?: string };
    post({ type: "failed", kind, code, message: (error as Error).message });
  })
  .finally(() => parentPort!.close());
