// Security properties of joining: attackers who do not know the job's secret get no rank, learn no data, and change no
// data. Attacks on complete runs are in apps/trainer/test/attacks.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { LinkListener } from "../src/network/link-listener.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import { listenByTcp } from "../src/network/tcp.ts";
import { listenByTls } from "../src/network/tls.ts";
import { HandshakeDialler, jobKey } from "../src/security/handshake.ts";
import { type TlsIdentity, tlsClientOptions, tlsServerOptions } from "../src/security/tls-identity.ts";
import { FrameReader } from "../src/wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../src/wire/frame.ts";
import { makeAuthority } from "./network-certificates.ts";
import {
  build,
  closing,
  failureOf,
  host as hostIn,
  type Hosted,
  job,
  Opened,
  secret,
  until,
} from "./rendezvous-world.ts";

const opened = new Opened();
afterEach(() => opened.close());
const host = (...args: Parameters<typeof hostIn> extends [Opened, ...infer Rest] ? Rest : never): Promise<Hosted> =>
  hostIn(opened, ...args);

/** Returns a rank's listener for links, and the reasons for its rejected connections. */
const listen = async (
  rank: number,
  different: Partial<LinkOptions> = {},
  tls?: TlsIdentity,
): Promise<LinkListener & { readonly refused: string[] }> => {
  const refused: string[] = [];
  const onRefused = ({ error }: { readonly error: Error }): void => void refused.push(error.message);
  const options = { rank, worldSize: 2, job, build, secret, connectMilliseconds: 1000, onRefused, ...different };
  const listener = await (tls === undefined ? listenByTcp(options) : listenByTls({ ...options, tls }));
  opened.add(() => listener.close());
  return { ...listener, refused };
};

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Bytes that a wiretap has recorded for one connection, in order, by direction. */
interface Recording {
  readonly up: Buffer[];
  readonly down: Buffer[];
}

/** Starts a wiretap: it forwards every connection to `target` and back, and records the bytes. */
const tap = async (
  target: Address,
  direction?: "up" | "down",
  change: (bytes: Buffer) => Buffer = (bytes) => bytes,
): Promise<Address & { readonly recordings: Recording[]; inject(connection: number, bytes: Buffer): void }> => {
  const servers: Socket[] = [];
  const recordings: Recording[] = [];
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(target.port, target.host);
    const recording: Recording = { up: [], down: [] };
    recordings.push(recording);
    servers.push(far);
    for (const [from, to, way] of [
      [near, far, "up"],
      [far, near, "down"],
    ] as const) {
      sockets.push(from);
      from.on("data", (chunk: Buffer) => {
        recording[way].push(chunk);
        to.write(way === direction ? change(chunk) : chunk);
      });
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
    }
  }).listen(0, "127.0.0.1");
  opened.add(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    recordings,
    inject: (connection, bytes) => void servers[connection]!.write(bytes),
  };
};

/** Changes the payloads of complete frames, and recomputes their headers. */
const rewrite = (bytes: Buffer, change: (type: FrameType, payload: Uint8Array) => Uint8Array): Buffer => {
  const pieces: Uint8Array[] = [];
  new FrameReader(
    {
      limit: () => 2 ** 20,
      target: ({ length }) => new Uint8Array(length),
      frame: (header, payload) => {
        const changed = change(header.type, payload);
        pieces.push(encodeHeader({ ...header, length: changed.byteLength }, changed), changed);
      },
    },
    { inSequence: false },
  ).push(bytes);
  return Buffer.concat(pieces);
};

describe("what an eavesdropper recorded", () => {
  test("of a coordinator's replies does not impersonate the coordinator", async () => {
    const hosted = await host(1);
    const wire = await tap(hosted.coordinator.address);
    await hosted.join([0], { address: wire });
    const recorded = wire.recordings[0]!;
    const heard: Buffer[] = [];
    const gone = Promise.withResolvers<void>();
    const impostor = createServer((socket) => {
      socket.on("error", () => undefined).on("data", (chunk: Buffer) => heard.push(chunk));
      socket.once("close", () => gone.resolve());
      socket.once("data", () => socket.write(Buffer.concat(recorded.down)));
    }).listen(0, "127.0.0.1");
    opened.add(() => impostor.close());
    await once(impostor, "listening");
    const address = { host: "127.0.0.1", port: (impostor.address() as AddressInfo).port };
    expect((await failureOf(hosted.join([0], { address }))).code).toBe("peer-identity");
    await gone.promise;
    // The process revealed neither a proof nor its join request to the attacker.
    const types: FrameType[] = [];
    new FrameReader({
      limit: () => 2 ** 20,
      target: ({ length }) => new Uint8Array(length),
      frame: ({ type }) => types.push(type),
    }).push(Buffer.concat(heard));
    expect(types[0]).toBe("hello");
    expect(types.slice(1).filter((type) => type !== "refuse")).toEqual([]);
  });

  test("of control messages cannot be replayed, and other messages cannot be injected", async () => {
    const hosted = await host(1);
    const [heard, lost]: unknown[][] = [[], []];
    hosted.coordinator.onMessage(({ message }) => heard!.push(message));
    hosted.coordinator.onLost((loss) => lost!.push(loss.reason));
    const wire = await tap(hosted.coordinator.address);
    const member = await hosted.join([0], { address: wire });
    member.send("once");
    await until(() => heard!.length === 1);
    wire.inject(0, wire.recordings[0]!.up.at(-1)!);
    await until(() => lost!.length === 1);
    expect(heard).toEqual(["once"]);
    expect(lost![0]).toMatch(/sequence|seal/);
  });
});

test.each(["ping", "bye", "control"] as const)("a man in the middle cannot inject a %s", async (type) => {
  // Long heartbeats, so that the next frame is the attacker's.
  const silent = { intervalMilliseconds: 60_000, lossMilliseconds: 600_000, stuckMilliseconds: 600_000 };
  const hosted = await host(1, { heartbeat: silent });
  const lost: string[] = [];
  hosted.coordinator.onLost(({ reason }) => lost.push(reason));
  const wire = await tap(hosted.coordinator.address);
  await hosted.join([0], { address: wire });
  const payload = new Uint8Array(type === "bye" ? 0 : 4);
  // Sequence number after hello, proof and join.
  const header = encodeHeader({ type, flags: 0, stream: 0, sequence: 3, tag: 0, length: payload.byteLength }, payload);
  wire.inject(0, Buffer.concat([header, payload]));
  await until(() => lost.length === 1);
  expect(lost[0]).toContain("does not carry the expected seal");
});

describe("a man in the middle", () => {
  // Without TLS, a man in the middle can forward, read and drop all messages: see docs/protocol.md. But it cannot
  // change them.
  test("cannot change one bit of a join, of its reply, or of a message", async () => {
    for (const [direction, which] of [
      ["up", "hello"],
      ["up", "proof"],
      ["up", "join"],
      ["down", "challenge"],
      ["down", "welcome"],
      ["down", "control"],
    ] as const) {
      const hosted = await host(1);
      let changed = 0;
      const wire = await tap(hosted.coordinator.address, direction, (bytes) =>
        rewrite(bytes, (type, payload) => {
          if (type !== which) return payload;
          changed++;
          const copy = Uint8Array.from(payload);
          copy[copy.length - 20]! ^= 1; // the checksum is recomputed: this is not an accidental error
          return copy;
        }),
      );
      const error = await failureOf(hosted.join([0], { address: wire, joinTimeoutMilliseconds: 300 }));
      expect(error.code, which).toMatch(
        /^(rendezvous-timeout|coordinator-lost|peer-identity|control-message|frame-seal|join-job)$/,
      );
      expect(changed, which).toBeGreaterThan(0);
      await hosted.coordinator.close();
    }
  });

  test("of TLS is detected, although its certificate is valid", async () => {
    const authority = makeAuthority();
    const [coordinator, rank] = [authority.issue(["skein:coordinator"]), authority.issue(["skein:rank:0"])];
    const hosted = await host(1, { security: coordinator });
    const middle = createTlsServer({ ...tlsServerOptions(coordinator) }, (near) => {
      const far = connectTls({ ...tlsClientOptions(rank, "coordinator"), ...hosted.coordinator.address });
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) socket.on("error", () => undefined);
    }).listen(0, "127.0.0.1");
    opened.add(() => middle.close());
    await once(middle, "listening");
    const address = { host: "127.0.0.1", port: (middle.address() as AddressInfo).port };
    expect((await failureOf(hosted.join([0], { address, security: rank }))).code).toBe("peer-identity");
    expect(hosted.events.filter(({ kind }) => kind === "joined")).toEqual([]);
    await hosted.join([0], { security: rank }); // a direct connection with the same identity succeeds
  });
});

test("an unauthenticated connection is closed at the deadline, however slowly it keeps sending", async () => {
  const hosted = await host(1, { handshakeTimeoutMilliseconds: 300 });
  const socket = connect(hosted.coordinator.address.port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  const drops = setInterval(() => socket.write("S"), 10);
  await closing(socket);
  clearInterval(drops);
  await until(() => hosted.events.some(({ kind }) => kind === "dropped"));
  await hosted.join([0]);
});

describe("a man in the middle of a link", () => {
  // Changed frames have valid checksums, as in the test above. Changes of data frames are not detected without TLS: see
  // docs/protocol.md.
  test.each([
    ["up", "join", {}],
    ["down", "welcome", {}],
    ["down", "refuse", { build: "another" }],
  ] as const)("may not change one bit of what goes %s as its %s", async (direction, which, different) => {
    const [zero, one] = [await listen(0), await listen(1, different)];
    let changed = 0;
    const wire = await tap(zero, direction, (bytes) =>
      rewrite(bytes, (type, payload) => {
        if (type !== which) return payload;
        changed++;
        const copy = Uint8Array.from(payload);
        copy[copy.length - 20]! ^= 1;
        return copy;
      }),
    );
    const error = await failureOf(one.connect([{ rank: 0, ...wire }]));
    expect(changed).toBeGreaterThan(0);
    expect([...zero.refused, error.message].join("\n")).toContain("does not carry the expected seal");
  });

  test("of TLS is detected, although both its certificates are valid", async () => {
    const authority = makeAuthority();
    const [zeroIdentity, oneIdentity] = [authority.issue(["skein:rank:0"]), authority.issue(["skein:rank:1"])];
    const [zero, one] = [await listen(0, {}, zeroIdentity), await listen(1, {}, oneIdentity)];
    const middle = createTlsServer({ ...tlsServerOptions(zeroIdentity) }, (near) => {
      const far = connectTls({ ...tlsClientOptions(oneIdentity, { rank: 0 }), host: zero.host, port: zero.port });
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) socket.on("error", () => undefined);
    }).listen(0, "127.0.0.1");
    opened.add(() => middle.close());
    await once(middle, "listening");
    const { port } = middle.address() as AddressInfo;
    expect((await failureOf(one.connect([{ rank: 0, host: "127.0.0.1", port }]))).code).toBe("link-secret");
  });

  test("cannot use a connection to the coordinator as a link, or vice versa", async () => {
    const [hosted, zero, one] = [await host(1), await listen(0), await listen(1)];
    await failureOf(hosted.join([0], { address: zero, joinTimeoutMilliseconds: 100 }));
    expect(zero.refused[0]).toContain("asks for a control connection, and this port serves data connections");
    await failureOf(one.connect([{ rank: 0, ...hosted.coordinator.address }]));
    await hosted.coordinator.close(); // flushes its log
    expect(hosted.events.filter(({ message }) => message.includes("its first frame is not a valid hello"))).not.toEqual(
      [],
    );
  });
});

describe("when there are more unauthenticated connections than slots", () => {
  const places = 1024 + 2;
  const hello = (): Buffer => {
    const payload = new HandshakeDialler({
      audience: "control",
      job,
      key: jobKey(secret, job),
      binding: new Uint8Array(0),
    }).hello();
    return Buffer.concat([
      encodeHeader({ type: "hello", flags: 0, stream: 0, sequence: 0, tag: 0, length: payload.byteLength }, payload),
      payload,
    ]);
  };
  /** Connects, sends `words`, and waits for a reply if `words` is present. */
  const connectUnauthenticated = async ({ host: name, port }: Address, words?: Buffer): Promise<Socket> => {
    const socket = connect(port, name);
    opened.add(() => socket.destroy());
    socket.on("error", () => undefined);
    if (words !== undefined) socket.write(words);
    const event = words === undefined ? "connect" : "data";
    await Promise.race([new Promise((resolve) => socket.once(event, resolve)), closing(socket)]);
    socket.resume();
    return socket;
  };

  test("silent connections are closed before an older one that has sent a hello", async () => {
    const hosted = await host(2, { handshakeTimeoutMilliseconds: 60_000 });
    const spoken = await connectUnauthenticated(hosted.coordinator.address, hello());
    const silent: Socket[] = [];
    for (let i = 0; i < places; i++) silent.push(await connectUnauthenticated(hosted.coordinator.address));
    await until(() => silent.some(({ destroyed }) => destroyed));
    expect(spoken.destroyed).toBe(false);
  });

  test("an authenticated process is not closed", async () => {
    const hosted = await host(2, { handshakeTimeoutMilliseconds: 60_000 });
    vi.spyOn(Math, "random").mockReturnValue(0); // of the connections that have sent data, the oldest would be closed
    opened.add(() => vi.restoreAllMocks());
    const first = hosted.join([0]);
    await until(() => hosted.events.some(({ kind }) => kind === "joined"));
    const crowd: Socket[] = [];
    for (let i = 0; i <= places; i++) crowd.push(await connectUnauthenticated(hosted.coordinator.address, hello()));
    await until(() => crowd.some(({ destroyed }) => destroyed));
    await Promise.all([first, hosted.join([1])]);
    expect(hosted.events.filter(({ kind }) => kind === "left")).toEqual([]);
  });
});
