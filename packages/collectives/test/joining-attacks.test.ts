// Laws of a start against who has not proven that it knows the job's secret: it takes no seat, learns nothing, and changes nothing. Whole
// runs are attacked in apps/trainer/test/attacks.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { tlsClientOptions, tlsServerOptions } from "../src/security/tls-identity.ts";
import { FrameReader } from "../src/wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../src/wire/frame.ts";
import { makeAuthority } from "./network-certificates.ts";
import { closing, failureOf, host as hostIn, type Hosted, Opened, until } from "./rendezvous-world.ts";

const opened = new Opened();
afterEach(() => opened.close());
const host = (...args: Parameters<typeof hostIn> extends [Opened, ...infer Rest] ? Rest : never): Promise<Hosted> =>
  hostIn(opened, ...args);

interface Address {
  readonly host: string;
  readonly port: number;
}

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

describe("what an eavesdropper has recorded", () => {
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

test.each(["ping", "bye", "control"] as const)("nobody on the way can put in a %s of his own", async (type) => {
  const silent = { intervalMilliseconds: 60_000, lossMilliseconds: 600_000, stuckMilliseconds: 600_000 }; // the next frame is ours
  const hosted = await host(1, { heartbeat: silent });
  const lost: string[] = [];
  hosted.coordinator.onLost(({ reason }) => lost.push(reason));
  const wire = await tap(hosted.coordinator.address);
  await hosted.join([0], { address: wire });
  const payload = new Uint8Array(type === "bye" ? 0 : 4);
  // Behind hello, proof and join.
  const header = encodeHeader({ type, flags: 0, stream: 0, sequence: 3, tag: 0, length: payload.byteLength }, payload);
  wire.inject(0, Buffer.concat([header, payload]));
  await until(() => lost.length === 1);
  expect(lost[0]).toContain("does not carry the seal that is due");
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

test("a stranger is sent away at the deadline, however slowly it goes on talking", async () => {
  const hosted = await host(1, { handshakeTimeoutMilliseconds: 300 });
  const socket = connect(hosted.coordinator.address.port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  const drops = setInterval(() => socket.write("S"), 10);
  await closing(socket);
  clearInterval(drops);
  await until(() => hosted.events.some(({ kind }) => kind === "dropped"));
  await hosted.join([0]);
});
