import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { PeerAddress } from "../src/network/dial.ts";
import type { LinkListener } from "../src/network/link-listener.ts";
import type { LinkOptions, Refusal } from "../src/network/link-options.ts";
import { listenByTcp } from "../src/network/tcp.ts";
import { listenByTls } from "../src/network/tls.ts";
import type { TlsIdentity } from "../src/security/tls-identity.ts";
import { encodeHeader, type FrameType } from "../src/wire/frame.ts";
import { makeAuthority } from "./network-certificates.ts";
import { identityOf, secret } from "./network-worlds.ts";

const listeners: LinkListener[] = [];
const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

const own = { job: "job", secret, build: "build", worldSize: 2, connectMilliseconds: 3000, handshakeMilliseconds: 300 };
const listen = async (options: Partial<LinkOptions> & { rank: number }, tls?: TlsIdentity): Promise<LinkListener> => {
  const complete = { ...own, ...options };
  const listener = await (tls === undefined ? listenByTcp(complete) : listenByTls({ ...complete, tls }));
  listeners.push(listener);
  return listener;
};
const addressOf = (rank: number, { host, port }: LinkListener): PeerAddress => ({ rank, host, port });

/** Returns the result of an attempt to link two ranks: for each rank its error code, or "linked". */
const outcome = async (
  a: LinkListener,
  b: LinkListener,
  ranks: readonly [number, number] = [0, 1],
): Promise<unknown[]> => {
  const results = await Promise.allSettled([a.connect([addressOf(ranks[1], b)]), b.connect([addressOf(ranks[0], a)])]);
  return results.map((result) => {
    if (result.status === "rejected") return (result.reason as { code: string }).code;
    for (const link of result.value) link.destroy();
    return "linked";
  });
};

test("two matching ranks link", async () => {
  expect(await outcome(await listen({ rank: 0 }), await listen({ rank: 1 }))).toEqual(["linked", "linked"]);
});

describe("two ranks that do not match both get the reason", () => {
  test.each([
    ["job", { job: "another" }, "link-job"],
    ["build", { build: "another" }, "link-build"],
    ["world size", { worldSize: 3 }, "link-world-size"],
    ["lanes", { lanes: 3 }, "link-settings"],
    ["frames", { frameBytes: 1000 }, "link-settings"],
    ["sockets", { socketsPerPair: 2 }, "link-settings"],
    ["rank, which is in use", { rank: 0 }, "link-rank"],
    ["rank, which is out of range", { rank: 2 }, "link-rank"],
    ["secret", { secret: "another secret, of at least 32 bytes" }, "link-secret"],
  ])("another %s", async (_, other, code) => {
    const [first, second] = await outcome(await listen({ rank: 0 }), await listen({ rank: 1, ...other }));
    expect([first, second]).toEqual([code, code]);
  });

  test("a rank that is already linked", async () => {
    const refusals: Refusal[] = [];
    const listener = await listen({ rank: 0, worldSize: 3, onRefused: (refusal) => refusals.push(refusal) });
    const first = await listen({ rank: 1, worldSize: 3 });
    const impostor = await listen({ rank: 1, worldSize: 3, connectMilliseconds: 1000 });
    const linking = first.connect([addressOf(0, listener)]).catch((error: { code: string }) => error.code);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await expect(impostor.connect([addressOf(0, listener)])).rejects.toMatchObject({
      code: "link-rank-taken",
      kind: "environment",
    });
    expect(refusals.map(({ error }) => (error as unknown as { code: string }).code)).toEqual(["link-rank-taken"]);
    await first.close();
    expect(await linking).toBe("link-closed");
  });
});

const frame = (
  type: FrameType,
  payload: Uint8Array,
  change: (header: Uint8Array) => void = () => undefined,
): Buffer => {
  const header = encodeHeader({ type, flags: 0, stream: 0, sequence: 0, tag: 0, length: payload.byteLength }, payload);
  change(header);
  return Buffer.concat([header, payload]);
};
const version1 = (header: Uint8Array): void => void (header[4] = 1);
const announce = (length: bigint) => (header: Uint8Array) =>
  new DataView(header.buffer, header.byteOffset).setBigUint64(20, length, true);

describe("unauthenticated connections do not affect the world", () => {
  test.each([
    ["no bytes", Buffer.alloc(0), "link-timeout"],
    ["half a header", frame("hello", new Uint8Array(0)).subarray(0, 20), "link-timeout"],
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.0\r\n\r\n"), "link-garbage"],
    ["random bytes", Buffer.from(Array.from({ length: 500 }, (_, i) => (i * 89 + 7) & 255)), "link-garbage"],
    ["2^63 bytes announced", frame("hello", new Uint8Array(0), announce(2n ** 63n)), "link-garbage"],
    ["2^40 bytes announced", frame("hello", new Uint8Array(0), announce(2n ** 40n)), "link-garbage"],
    [
      "more bytes announced than allowed before authentication",
      frame("hello", new Uint8Array(0), announce(2n ** 11n)),
      "link-garbage",
    ],
    ["a hello that is not JSON", frame("hello", Buffer.from("hello")), "link-garbage"],
    ["a hello without its fields", frame("hello", Buffer.from("{}")), "link-garbage"],
    ["data before a hello", frame("data", Buffer.from("data")), "link-garbage"],
    ["a welcome", frame("welcome", Buffer.from("{}")), "link-garbage"],
    ["another version", frame("hello", Buffer.from("{}"), version1), "link-protocol"],
  ])("%s", async (_, bytes, code) => {
    const refusals: Refusal[] = [];
    const listener = await listen({ rank: 0, onRefused: (refusal) => refusals.push(refusal) });
    const socket = connect({ host: listener.host, port: listener.port });
    sockets.push(socket);
    socket.on("error", () => undefined);
    const ended = new Promise((resolve) => socket.once("close", resolve));
    socket.write(bytes);
    socket.resume();
    await ended; // the listener ends it, not the test
    expect(refusals.map(({ error }) => (error as unknown as { code: string }).code)).toEqual([code]);
    expect(await outcome(listener, await listen({ rank: 1 }))).toEqual(["linked", "linked"]);
  });

  test("a hundred at once", async () => {
    const listener = await listen({ rank: 0 });
    for (let i = 0; i < 100; i++) {
      const socket = connect({ host: listener.host, port: listener.port });
      socket.on("error", () => undefined);
      if (i % 2 === 0) socket.write("noise");
      sockets.push(socket);
    }
    expect(await outcome(listener, await listen({ rank: 1 }))).toEqual(["linked", "linked"]);
  });
});

describe("the connected peer is not the expected rank", () => {
  const pretend = async (answer: (socket: Socket) => void): Promise<PeerAddress> => {
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      answer(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { rank: 1, host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  };
  test.each([
    [
      "it sends garbage",
      (socket: Socket) => void socket.write("SSH-2.0-OpenSSH_9.2 and more than thirty-two bytes\r\n"),
      "link-garbage",
    ],
    ["it sends data", (socket: Socket) => void socket.write(frame("data", Buffer.from("data"))), "link-garbage"],
    [
      "it announces 2^63 bytes",
      (socket: Socket) => void socket.write(frame("welcome", new Uint8Array(0), announce(2n ** 63n))),
      "link-garbage",
    ],
    [
      "it uses another protocol version",
      (socket: Socket) => void socket.write(frame("welcome", Buffer.from("{}"), version1)),
      "link-protocol",
    ],
    ["it sends nothing", () => undefined, expect.stringMatching(/^link-(unreachable|timeout)$/)],
    [
      "it closes the connection",
      (socket: Socket) => void socket.destroy(),
      expect.stringMatching(/^link-(unreachable|timeout)$/),
    ],
  ])("%s", async (_, answer, code) => {
    const listener = await listen({ rank: 0, connectMilliseconds: 800 });
    await expect(listener.connect([await pretend(answer)])).rejects.toMatchObject({ code });
  });

  test("it is another rank of the same world", async () => {
    const a = await listen({ rank: 0, worldSize: 3 });
    const c = await listen({ rank: 2, worldSize: 3 });
    // Rank 2 rejects a connection intended for rank 1.
    await expect(a.connect([addressOf(1, c)])).rejects.toMatchObject({ code: "link-rank" });
  });

  test("nothing listens: the error names the rank and its address", async () => {
    const gone = await listen({ rank: 1 });
    await gone.close();
    const listener = await listen({ rank: 0, connectMilliseconds: 400 });
    await expect(listener.connect([addressOf(1, gone)])).rejects.toThrow(
      /rank 0 cannot reach rank 1 at 127\.0\.0\.1:\d+: connect ECONNREFUSED|rank 1 did not link with rank 0 within 400 ms/,
    );
  });
});

test("names ranks that never connect, and the last rejected connection", async () => {
  const a = await listen({ rank: 0, worldSize: 4, connectMilliseconds: 500 });
  const b = await listen({ rank: 1, worldSize: 4, connectMilliseconds: 500 });
  // a connects to two ranks that both accept, but neither of them connects to a.
  const c = await listen({ rank: 2, worldSize: 4 });
  await expect(a.connect([addressOf(1, b), addressOf(2, c)])).rejects.toThrow(
    /ranks 1, 2 did not link with rank 0 within 500 ms/,
  );
});

describe("listening beyond loopback requires security", () => {
  test.each(["0.0.0.0", "::", "192.0.2.7"])("rejects %s without TLS", async (host) => {
    await expect(listenByTcp({ ...own, rank: 0, host })).rejects.toMatchObject({ code: "insecure" });
  });

  test("allows it with the option insecure", async () => {
    const listener = await listen({ rank: 0, host: "0.0.0.0", insecure: true });
    expect(listener.port).toBeGreaterThan(0);
  });

  test("allows it with TLS", async () => {
    const listener = await listen({ rank: 0, host: "0.0.0.0" }, identityOf(0));
    expect(listener.port).toBeGreaterThan(0);
  });
});

describe("over TLS", () => {
  test("links with certificates of one authority, one per rank", async () => {
    expect(await outcome(await listen({ rank: 0 }, identityOf(0)), await listen({ rank: 1 }, identityOf(1)))).toEqual([
      "linked",
      "linked",
    ]);
  });

  test("links with one certificate for several ranks of a process", async () => {
    expect(
      await outcome(await listen({ rank: 0 }, identityOf(0)), await listen({ rank: 1 }, identityOf(1, 2))),
    ).toEqual(["linked", "linked"]);
  });

  test("rejects a certificate of another rank", async () => {
    const [zero, one] = [await listen({ rank: 0 }, identityOf(0)), await listen({ rank: 1 }, identityOf(2))];
    // In sequence, because a rank that has detected the mismatch stops listening.
    await expect(one.connect([addressOf(0, zero)])).rejects.toMatchObject({ code: "link-identity" }); // gets the reason
    const again = await listen({ rank: 1 }, identityOf(2));
    // The rank detects the mismatch when it connects.
    await expect(zero.connect([addressOf(1, again)])).rejects.toMatchObject({ code: "peer-identity" });
  });

  test("rejects a certificate of another authority", async () => {
    const other = makeAuthority().issue(["skein:rank:1"]);
    expect(await outcome(await listen({ rank: 0 }, identityOf(0)), await listen({ rank: 1 }, other))).toEqual([
      "peer-identity",
      "peer-identity",
    ]);
  });

  test("TCP and TLS do not connect to each other, and report it in time", async () => {
    const outcomes = await outcome(
      await listen({ rank: 0, connectMilliseconds: 800 }, identityOf(0)),
      await listen({ rank: 1, connectMilliseconds: 800 }),
    );
    for (const code of outcomes) expect(code).toMatch(/^(link-(garbage|unreachable|timeout)|peer-identity)$/);
  });

  test("a connection without a certificate does not affect the world", async () => {
    const refusals: Refusal[] = [];
    const listener = await listen({ rank: 0, onRefused: (refusal) => refusals.push(refusal) }, identityOf(0));
    const socket = connect({ host: listener.host, port: listener.port });
    sockets.push(socket);
    socket.on("error", () => undefined).resume();
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await new Promise((resolve) => socket.once("close", resolve));
    expect(refusals).toHaveLength(1);
    expect(await outcome(listener, await listen({ rank: 1 }, identityOf(1)))).toEqual(["linked", "linked"]);
  });
});
