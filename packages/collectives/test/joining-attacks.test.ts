// Attacks on a start, all on loopback and bounded: who has not proven that it knows the job's secret takes no seat, learns nothing, and
// keeps nobody out.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import type { LinkListener } from "../src/network/link-listener.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import { listenByTcp } from "../src/network/tcp.ts";
import { HandshakeDialler, jobKey } from "../src/security/handshake.ts";
import { tlsClientOptions, tlsServerOptions } from "../src/security/tls-identity.ts";
import { FrameReader } from "../src/wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../src/wire/frame.ts";
import { makeAuthority } from "./network-certificates.ts";
import { build, closing, failureOf, host as hostIn, type Hosted, job, Opened, secret, until } from "./rendezvous-world.ts";

const opened = new Opened();
afterEach(() => opened.close());
const host = (...args: Parameters<typeof hostIn> extends [Opened, ...infer Rest] ? Rest : never): Promise<Hosted> =>
  hostIn(opened, ...args);

interface Address {
  readonly host: string;
  readonly port: number;
}

/** A rank's listener for links. */
const listen = async (rank: number, different: Partial<LinkOptions> = {}): Promise<LinkListener> => {
  const listener = await listenByTcp({ rank, worldSize: 2, job, build, secret, connectMilliseconds: 15_000, ...different });
  opened.add(() => listener.close());
  return listener;
};

/** What went over one connection, in order. */
interface Recording {
  readonly up: Buffer[];
  readonly down: Buffer[];
}

/** A wire tap: carries every connection to `target` and back, and keeps what it carries. */
const tap = async (
  target: Address,
  direction?: "up" | "down",
  change: (bytes: Buffer) => Buffer = (bytes) => bytes,
): Promise<Address & { readonly recordings: Recording[]; cut(): void; inject(connection: number, bytes: Buffer): void }> => {
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
    cut: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};

/** Change the payloads of whole frames, and make their headers anew. */
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

/** Play what was sent to `target` again, chunk by chunk; resolves with the types of the frames that answered. */
const replay = async ({ host: name, port }: Address, chunks: readonly Buffer[]): Promise<FrameType[]> => {
  const socket = connect(port, name);
  opened.add(() => socket.destroy());
  const types: FrameType[] = [];
  const reader = new FrameReader(
    { limit: () => 2 ** 20, target: ({ length }) => new Uint8Array(length), frame: ({ type }) => types.push(type) },
    { inSequence: false },
  );
  socket.on("data", (chunk: Buffer) => reader.push(chunk)).on("error", () => undefined);
  await once(socket, "connect");
  const closed = closing(socket);
  for (const chunk of chunks) {
    socket.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 20)); // as the first time, when answers came between
  }
  socket.end();
  await closed;
  return types;
};

describe("what an eavesdropper has recorded", () => {
  test("of a join takes no seat", async () => {
    const hosted = await host(2);
    const wire = await tap(hosted.coordinator.address);
    const joined = hosted.join([1], { address: wire, joinTimeoutMilliseconds: 1000 }).catch(() => undefined);
    await until(() => hosted.events.some(({ kind }) => kind === "joined"));
    wire.cut(); // rank 1 is gone, its seat is free
    await until(() => hosted.events.some(({ kind }) => kind === "left"));
    const answers = await replay(hosted.coordinator.address, wire.recordings[0]!.up);
    expect(answers).not.toContain("welcome");
    expect(hosted.events.filter(({ kind }) => kind === "joined")).toHaveLength(1);
    await joined;
  });

  test("of a link does not link", async () => {
    const [zero, one] = [await listen(0), await listen(1)];
    const wire = await tap(zero);
    const linking = one.connect([{ rank: 0, ...wire }]).catch(() => undefined); // rank 0 does not dial back, so its door stays open
    await until(() => wire.recordings[0] !== undefined && wire.recordings[0].down.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    wire.cut();
    expect(await replay(zero, wire.recordings[0]!.up)).not.toContain("welcome");
    await one.close();
    await linking;
  });

  test("of a coordinator's answers makes nobody a coordinator", async () => {
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
    // It learned nothing: neither a proof nor who asked to join was shown to it.
    const types: FrameType[] = [];
    new FrameReader({ limit: () => 2 ** 20, target: ({ length }) => new Uint8Array(length), frame: ({ type }) => types.push(type) }).push(
      Buffer.concat(heard),
    );
    expect(types[0]).toBe("hello");
    expect(types.slice(1).filter((type) => type !== "refuse")).toEqual([]);
  });

  test("of control messages cannot be said again, nor can others be put in", async () => {
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

describe("somebody in the middle", () => {
  // In the clear they can carry all that is said, read it, and cut it off: docs/protocol.md. What they cannot do is change it.
  test("may not change one bit of a join, of its answer, or of a message", async () => {
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
          copy[copy.length - 20]! ^= 1; // the sum is made anew: this is no accident
          return copy;
        }),
      );
      const error = await failureOf(hosted.join([0], { address: wire, joinTimeoutMilliseconds: 300 }));
      expect(error.code, which).toMatch(/^(rendezvous-timeout|coordinator-lost|peer-identity|control-message|frame-seal|join-job)$/);
      expect(changed, which).toBeGreaterThan(0);
      await hosted.coordinator.close();
    }
  });

  test("of TLS is seen, although its certificate is good", async () => {
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
    await hosted.join([0], { security: rank }); // straight, the same identity is good
  });
});

/** Keep `count` connections open, and open each again as soon as it ends, `most` in all. */
const hold = async ({ host: name, port }: Address, count: number, most: number, say?: () => Uint8Array): Promise<{ opened(): number }> => {
  let total = 0;
  let over = false;
  const sockets = new Set<Socket>();
  const open = (): void => {
    if (over || total >= most) return;
    total++;
    const socket = connect(port, name);
    sockets.add(socket);
    socket.on("error", () => undefined).resume();
    if (say !== undefined) socket.once("connect", () => socket.write(say()));
    socket.once("close", () => {
      sockets.delete(socket);
      setTimeout(open, 5);
    });
  };
  opened.add(() => {
    over = true;
    for (const socket of sockets) socket.destroy();
  });
  for (let i = 0; i < count; i++) open();
  await until(() => [...sockets].filter((socket) => !socket.connecting).length >= Math.min(count, 1000));
  return { opened: () => total };
};

describe("more than a thousand connections that are only held", () => {
  test("keep no rank out", async () => {
    const hosted = await host(4, { joinTimeoutMilliseconds: 15_000, handshakeTimeoutMilliseconds: 60_000 });
    await hold(hosted.coordinator.address, 1200, 3000);
    await Promise.all([0, 1, 2, 3].map((rank) => hosted.join([rank])));
    expect(await hosted.coordinator.ready).toHaveLength(4);
  });

  test("nor where they begin TLS and go no further", async () => {
    const authority = makeAuthority();
    const hosted = await host(1, { security: authority.issue(["skein:coordinator"]), handshakeTimeoutMilliseconds: 60_000 });
    await hold(hosted.coordinator.address, 1200, 2000, () => Buffer.from([0x16, 3, 1])); // the first bytes of a ClientHello
    await hosted.join([0], { security: authority.issue(["skein:rank:0"]) });
  });

  test("nor where each has said a hello", async () => {
    const hosted = await host(4, { joinTimeoutMilliseconds: 15_000, handshakeTimeoutMilliseconds: 60_000 });
    const hello = new HandshakeDialler({ audience: "control", job, key: jobKey("x".repeat(32), job), binding: new Uint8Array(0) }).hello();
    const header = encodeHeader({ type: "hello", flags: 0, stream: 0, sequence: 0, tag: 0, length: hello.byteLength }, hello);
    await hold(hosted.coordinator.address, 1200, 3000, () => Buffer.concat([header, hello])); // more than there are places
    await Promise.all([0, 1, 2, 3].map((rank) => hosted.join([rank])));
  });

  test("are ended at the deadline, however slowly they go on talking", async () => {
    const hosted = await host(1, { handshakeTimeoutMilliseconds: 300 });
    const socket = connect(hosted.coordinator.address.port, "127.0.0.1");
    socket.on("error", () => undefined).resume();
    const drops = setInterval(() => socket.write("S"), 10);
    await closing(socket);
    clearInterval(drops);
    await until(() => hosted.events.some(({ kind }) => kind === "dropped"));
    await hosted.join([0]);
  });

  test("nor from a link", async () => {
    const patient = { handshakeMilliseconds: 60_000 };
    const [zero, one] = [await listen(0, patient), await listen(1, patient)];
    await hold(zero, 1200, 3000);
    const links = await Promise.all([zero.connect([{ rank: 1, ...one }]), one.connect([{ rank: 0, ...zero }])]);
    for (const link of links.flat()) link.destroy();
  });
});

describe("a flood of garbage", () => {
  test("leaves a bounded log, which says how much it leaves out", async () => {
    const hosted = await host(2, { joinTimeoutMilliseconds: 15_000 });
    const flood = await hold(hosted.coordinator.address, 100, 2000, () => Buffer.from("GET / HTTP/1.1\r\nHost: here\r\n\r\n".repeat(30)));
    await until(() => flood.opened() >= 2000);
    await Promise.all([0, 1].map((rank) => hosted.join([rank])));
    await hosted.coordinator.close();
    const dropped = hosted.events.filter(({ kind }) => kind === "dropped");
    expect(dropped.length).toBeLessThan(50);
    expect(dropped.map(({ message }) => message.length).reduce((sum, length) => sum + length)).toBeLessThan(10_000);
    expect(dropped.at(-1)!.message).toMatch(/\d+ more connections/);
  });
});
