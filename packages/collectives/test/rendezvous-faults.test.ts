import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { joinCodec, type JoinRequest } from "../src/rendezvous/handshake-messages.ts";
import { reportCodec } from "../src/rendezvous/control-messages.ts";
import { openMember } from "../src/rendezvous/member.ts";
import type { FrameSeal } from "../src/security/frame-seal.ts";
import { HandshakeDialler, jobKey } from "../src/security/handshake.ts";
import { headerBytes } from "../src/wire/frame.ts";
import { damaged, frame, framesIn, ofVersion1, withLength } from "./rendezvous-frames.ts";
import { startChild } from "./rendezvous-child.ts";
import {
  build,
  closing,
  failureOf,
  host as hostIn,
  type Hosted,
  job,
  nextLoss,
  Opened,
  rest,
  secret,
  until,
} from "./rendezvous-world.ts";

const opened = new Opened();
afterEach(() => opened.close());
const host = (...args: Parameters<typeof hostIn> extends [Opened, ...infer Rest] ? Rest : never): Promise<Hosted> =>
  hostIn(opened, ...args);

const dialler = (): HandshakeDialler =>
  new HandshakeDialler({ audience: "control", job, key: jobKey(secret, job), binding: new Uint8Array(0) });

const requestOf = (rank: number, worldSize: number, different: Partial<JoinRequest> = {}): JoinRequest => ({
  build,
  worldSize,
  ranks: [rank],
  addresses: [{ host: "127.0.0.1", port: 1 }],
  hostName: "here",
  ...different,
});

/** Opens a raw connection to the coordinator. */
const connectRaw = async ({
  coordinator,
}: Hosted): Promise<{
  readonly socket: Socket;
  readonly received: () => Buffer;
  readonly closed: Promise<unknown>;
}> => {
  const socket = connect(coordinator.address.port, "127.0.0.1");
  opened.add(() => socket.destroy());
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.on("error", () => {});
  const closed = closing(socket);
  await once(socket, "connect");
  return { socket, received: () => received, closed };
};

/** Joins with manually built frames and the correct secret, up to the join request, which may be any bytes. */
const joinWithRawFrames = async (
  hosted: Hosted,
  request: Uint8Array,
): Promise<Awaited<ReturnType<typeof connectRaw>> & { readonly sealer: FrameSeal }> => {
  const client = await connectRaw(hosted);
  const handshake = dialler();
  client.socket.write(frame("hello", handshake.hello()));
  await until(() => framesIn(client.received()).length > 0);
  const answer = handshake.answer(framesIn(client.received())[0]!.payload);
  if ("what" in answer) throw new Error("the coordinator does not know the secret");
  client.socket.write(frame("proof", answer.proof, 1));
  client.socket.write(frame("join", answer.proven.sealer.sealed("join", request), 2));
  return { ...client, sealer: answer.proven.sealer };
};

describe("a loss", () => {
  test("by kill -9 is reported to all others at once, and later losses are not", async () => {
    // Heartbeats are too slow for this test, so that losses are detected only by closed connections.
    const { coordinator, joining, join, events } = await host(5, {
      heartbeat: { intervalMilliseconds: 200_000, lossMilliseconds: 500_000, stuckMilliseconds: 500_000 },
    });
    const child = startChild(opened, { join: joining([1, 3]), after: "stay" });
    const second = startChild(opened, { join: joining([4]), after: "stay" });
    const members = await Promise.all([join([0]), join([2])]);
    await Promise.all([child.output(/(complete)/), second.output(/(complete)/)]);
    const losses = Promise.all([coordinator, ...members].map(nextLoss));
    child.kill("SIGKILL");
    for (const loss of await losses)
      expect(loss).toEqual({ ranks: [1, 3], reason: expect.stringMatching(/^its connection/) });
    const later: unknown[] = [];
    for (const member of members) member.onLost((loss) => later.push(loss.ranks));
    second.kill("SIGKILL");
    await until(() => events.some(({ message }) => message.includes("after the first loss")));
    await rest(50);
    expect(later).toEqual([
      [1, 3],
      [1, 3],
    ]); // A late listener receives only the first loss.
  });

  test("by silence, as of a stopped process, is reported after the loss time of the heartbeat", async () => {
    const { coordinator, joining, join, events } = await host(2, {
      heartbeat: { intervalMilliseconds: 200, lossMilliseconds: 1000, stuckMilliseconds: 60_000 },
    });
    const child = startChild(opened, { join: joining([1]), after: "stay" });
    const member = await join([0]);
    await child.output(/(complete)/);
    await rest(1300); // Longer than the loss time; only pings keep members alive.
    const silences = (): string[] => events.filter(({ kind }) => kind === "silent").map(({ message }) => message);
    child.kill("SIGSTOP");
    await until(() => silences().at(-1)?.includes("rank 1 on here: nothing was heard from it for 0.3 s") === true);
    child.kill("SIGCONT");
    await until(() => silences().at(-1) === "rank 1 on here: it is heard again");
    const losses = Promise.all([coordinator, member].map(nextLoss));
    child.kill("SIGSTOP");
    for (const { ranks, reason } of await losses) {
      expect(ranks).toEqual([1]);
      expect(reason).toMatch(/nothing was heard from it for \d\.\d s/);
    }
  });

  test("is not reported if a main thread is busy for longer, for example with fsync or reading data", async () => {
    const { coordinator, joining, join } = await host(2, {
      heartbeat: { intervalMilliseconds: 200, lossMilliseconds: 1000, stuckMilliseconds: 60_000 },
    });
    const losses: unknown[] = [];
    const awake = new Promise((resolve) => coordinator.onMessage(({ message }) => resolve(message)));
    const child = startChild(opened, { join: joining([1]), after: { blockMilliseconds: 3000 } });
    const member = await join([0]);
    for (const witness of [coordinator, member]) witness.onLost((loss) => losses.push(loss));
    expect(await awake).toBe("awake");
    expect(losses).toEqual([]);
    const lost = Promise.all([coordinator, member].map(nextLoss));
    child.kill("SIGSTOP"); // A stopped process counts as lost.
    for (const { ranks, reason } of await lost) {
      expect(ranks).toEqual([1]);
      expect(reason).toMatch(/nothing was heard from it for \d\.\d s/);
    }
  });

  test("is not reported if the host's main thread is busy, for example saving a checkpoint", async () => {
    const heartbeat = { intervalMilliseconds: 200, lossMilliseconds: 1000, stuckMilliseconds: 60_000 };
    const hostChild = startChild(opened, {
      host: { worldSize: 1, job, build, secret, ranks: [0], heartbeat },
      after: { blockMilliseconds: 3000 },
    });
    const port = Number(await hostChild.output(/^listening (\d+)$/m));
    const addresses = [{ host: "127.0.0.1", port: 1 }];
    const member = await openMember({
      address: { host: "127.0.0.1", port },
      ranks: [0],
      addresses,
      worldSize: 1,
      job,
      build,
      secret,
    });
    opened.add(() => member.close());
    const first = await Promise.race([nextLoss(member), new Promise((resolve) => member.onMessage(resolve))]);
    expect(first).toBe("awake");
  });

  test("by a main thread that is blocked for too long is reported with that reason", async () => {
    const { coordinator, joining, join } = await host(2, {
      heartbeat: { intervalMilliseconds: 200, lossMilliseconds: 1000, stuckMilliseconds: 1500 },
    });
    startChild(opened, { join: joining([1]), after: { blockMilliseconds: 60_000 } });
    const member = await join([0]);
    for (const { ranks, reason } of await Promise.all([coordinator, member].map(nextLoss))) {
      expect(ranks).toEqual([1]);
      expect(reason).toMatch(/its process runs, but its main thread has done nothing for \d\.\d s/);
    }
  });

  test("by not reading is reported before the memory is full", async () => {
    const { coordinator, joining } = await host(1, {
      heartbeat: { intervalMilliseconds: 200_000, lossMilliseconds: 500_000, stuckMilliseconds: 500_000 },
    });
    const child = startChild(opened, { join: joining([0]), after: "stay" });
    await child.output(/(complete)/);
    child.kill("SIGSTOP");
    const message = new Uint8Array(32 * 2 ** 20);
    let sent = 0;
    while (coordinator.send(0, message)) {
      sent++;
      expect(sent).toBeLessThan(6);
      await rest(20);
    }
    const { ranks, reason } = await nextLoss(coordinator);
    expect(ranks).toEqual([0]);
    expect(reason).toMatch(/it does not read: \d+ bytes wait for it/);
  });

  test("can be reported by a witness on either side, and only the first report counts", async () => {
    const { coordinator, join } = await host(3);
    const members = await Promise.all([join([0]), join([1]), join([2])]);
    const losses = Promise.all([coordinator, ...members].map(nextLoss));
    members[0]!.reportLost(2, "its data link broke");
    for (const loss of await losses) expect(loss).toEqual({ ranks: [2], reason: "its data link broke" });
    coordinator.reportLost(1, "too late to matter");
    await rest(20);
    for (const witness of [coordinator, members[0]!])
      expect(() => witness.reportLost(3, "never was")).toThrow(/rank 3 cannot be lost in a world of 3/);
  });

  test("of the coordinator is reported to every member, with the ranks of its process", async () => {
    const hostChild = startChild(opened, { host: { worldSize: 2, job, build, secret, ranks: [0] }, after: "stay" });
    const port = Number(await hostChild.output(/^listening (\d+)$/m));
    const member = await openMember({
      address: { host: "127.0.0.1", port },
      ranks: [0, 1],
      addresses: [1, 2].map((at) => ({ host: "127.0.0.1", port: at })),
      worldSize: 2,
      job,
      build,
      secret,
    });
    opened.add(() => member.close());
    const loss = nextLoss(member);
    hostChild.kill("SIGKILL");
    expect(await loss).toEqual({
      ranks: [0],
      reason: expect.stringMatching(/^the coordinator at 127.0.0.1:\d+ was lost: its connection/),
    });
    expect(member.send("anyone?")).toBe(false);
  });

  test("is not reported after a goodbye", async () => {
    const { coordinator, events, join } = await host(2);
    const [one, other] = await Promise.all([join([0]), join([1])]);
    const losses: unknown[] = [];
    for (const witness of [coordinator, one!, other!]) witness.onLost((loss) => losses.push(loss));
    await one!.close();
    await until(() => events.some(({ kind }) => kind === "left"));
    expect(coordinator.send(0, "gone")).toBe(false);
    await coordinator.close();
    await rest(20);
    expect(losses).toEqual([]);
  });
});

describe("an unauthenticated connection", () => {
  test.each<[string, Uint8Array, RegExp]>([
    ["garbage", Buffer.from("GET / HTTP/1.1\r\nHost: here\r\n\r\n           "), /a frame begins with/],
    ["2^63 bytes", withLength(frame("hello", new Uint8Array(0)), 2n ** 63n), /announces 9223372036854775808 bytes/],
    [
      "more than a hello",
      withLength(frame("hello", new Uint8Array(0)), 2n ** 20n),
      /announces 1048576 bytes, at most 1024/,
    ],
    ["a control frame", frame("control", Buffer.from("x")), /announces 1 bytes, at most 0/],
    ["a ping", frame("ping", new Uint8Array(0)), /unexpected ping frame/],
    ["a request at once", withLength(frame("join", new Uint8Array(0)), 1n), /announces 1 bytes, at most 0/],
    ["a hello of nonsense", frame("hello", Buffer.from("[[[[")), /its first frame is not a valid hello/],
    [
      "a hello that lacks its nonce",
      frame("hello", Buffer.from('{"job":"x"}')),
      /its first frame is not a valid hello/,
    ],
    [
      "a hello that would write lines of its own into a log",
      frame(
        "hello",
        Buffer.from(
          JSON.stringify({ audience: "control", minor: 0, job: "x\n2030-01-01 all is well", nonce: "0".repeat(64) }),
        ),
      ),
      /its first frame is not a valid hello$/,
    ],
    [
      "a hello for data",
      frame("hello", Buffer.from(JSON.stringify({ audience: "data", minor: 0, job, nonce: "0".repeat(64) }))),
      /not a valid hello/,
    ],
    ["a damaged hello", damaged(frame("hello", Buffer.from('{"job":"x"}'))), /checksum/],
  ])("that sends %s is dropped without disturbing the others", async (_, bytes, reason) => {
    const hosted = await host(2);
    const first = hosted.join([0]);
    const { socket, closed } = await connectRaw(hosted);
    socket.write(bytes);
    await closed;
    await until(() => hosted.events.some(({ kind, message }) => kind === "dropped" && reason.test(message)));
    await Promise.all([first, hosted.join([1])]);
    expect(await hosted.coordinator.ready).toHaveLength(2);
    const after = await connectRaw(hosted); // Later connections do not affect the world either.
    after.socket.write(bytes);
    await after.closed;
  });

  test("that sends nothing, or half a hello, is dropped at the handshake's deadline", async () => {
    const hosted = await host(1, { handshakeTimeoutMilliseconds: 100 });
    const [silent, half] = await Promise.all([connectRaw(hosted), connectRaw(hosted)]);
    half.socket.write(frame("hello", dialler().hello()).subarray(0, headerBytes + 7));
    await Promise.all([silent.closed, half.closed]);
    await until(
      () =>
        hosted.events.filter(({ message }) => message.includes("did not prove its identity within 100 ms")).length ===
        2,
    );
    await hosted.join([0]);
  });

  test("of another protocol version gets a refusal in this version, which is a typed error on its side", async () => {
    const hosted = await host(1);
    const { socket, received, closed } = await connectRaw(hosted);
    const bytes = frame("hello", new Uint8Array(0));
    bytes[4] = 1;
    socket.write(bytes);
    await closed;
    expect(framesIn(received()).map(({ type }) => type)).toEqual(["refuse"]);
    expect(hosted.events).toEqual([
      { kind: "refused", message: expect.stringMatching(/uses version 1 of the protocol, this rank version 2/) },
    ]);
  });

  test("that knows the secret must still send a valid request", async () => {
    const hosted = await host(2);
    const bad: [Uint8Array, RegExp][] = [
      [Buffer.from("[[[["), /bytes are not a join request: they cannot be decoded/],
      [joinCodec.encode(requestOf(1, 2, { ranks: [1, 0] })), /needs one address per rank/],
      [joinCodec.encode(requestOf(1, 2, { hostName: "here\n2030-01-01 all is well" })), /hostName is wrong/],
    ];
    for (const [request, reason] of bad) {
      const { closed } = await joinWithRawFrames(hosted, request);
      await closed;
      await until(() => hosted.events.some(({ message }) => reason.test(message)));
    }
    await Promise.all([hosted.join([0]), hosted.join([1])]);
  });

  test("that was admitted must not send messages before all ranks have joined", async () => {
    const hosted = await host(2);
    const { socket, received, closed, sealer } = await joinWithRawFrames(hosted, joinCodec.encode(requestOf(1, 2)));
    await until(() => framesIn(received()).some(({ type }) => type === "welcome"));
    const report = reportCodec.encode({ kind: "lost", rank: 0, reason: "no reason" });
    socket.write(frame("control", sealer.sealed("control", report), 3));
    await closed;
    await Promise.all([hosted.join([0]), hosted.join([1])]);
    expect(hosted.events.filter(({ kind }) => kind === "left")).toHaveLength(1);
  });

  test("that joins and leaves without a goodbye is named at the deadline, with the reason", async () => {
    const hosted = await host(2, { joinTimeoutMilliseconds: 3000 });
    const { socket, received } = await joinWithRawFrames(hosted, joinCodec.encode(requestOf(1, 2)));
    await until(() => framesIn(received()).some(({ type }) => type === "welcome"));
    socket.destroy();
    const { message } = await failureOf(hosted.coordinator.ready);
    expect(message).toMatch(
      /^ranks 0, 1 of 2 did not join within 3 s \(rank 1 had joined, but its connection closed without a goodbye/,
    );
  });

  test("never disturbs the others, whatever bytes it sends in whatever pieces", async () => {
    const hosted = await host(2, { handshakeTimeoutMilliseconds: 500 });
    // All valid frames, built without the secret and without having seen the challenge.
    const hello = Buffer.concat([
      frame("hello", dialler().hello()),
      frame("proof", new Uint8Array(32), 1),
      frame("join", Buffer.concat([joinCodec.encode(requestOf(1, 2)), new Uint8Array(16)]), 2),
    ]);
    const mutation = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.tuple(fc.nat(hello.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, flip]) => {
        const bytes = Buffer.from(hello);
        bytes[at]! ^= flip;
        return bytes;
      }),
      fc.nat(hello.length).map((cut) => hello.subarray(0, cut)),
      fc.constant(Buffer.concat([hello, hello])),
    );
    await fc.assert(
      fc.asyncProperty(mutation, fc.integer({ min: 1, max: 64 }), async (bytes, piece) => {
        const { socket, received, closed } = await connectRaw(hosted);
        for (let at = 0; at < bytes.length && !socket.destroyed; at += piece)
          socket.write(bytes.subarray(at, at + piece));
        socket.end();
        await closed;
        expect(framesIn(received()).some(({ type }) => type === "welcome" || type === "control")).toBe(false);
      }),
      { numRuns: 150 },
    );
    await Promise.all([hosted.join([0]), hosted.join([1])]);
  });
});

describe("a process that is not a coordinator", () => {
  test.each<[string, (socket: Socket) => void, string, RegExp]>([
    [
      "a web server",
      (socket) => socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
      "not-a-coordinator",
      /is not a coordinator of Skein/,
    ],
    [
      "a coordinator of another version",
      (socket) => socket.write(ofVersion1(frame("refuse", new Uint8Array(0)))),
      "protocol-version",
      /version 1 .* version 2/,
    ],
    [
      "a server that challenges with 2^63 bytes",
      (socket) => socket.write(withLength(frame("challenge", new Uint8Array(0)), 2n ** 63n)),
      "frame-length",
      /9223372036854775808/,
    ],
    [
      "a server that sends control before its welcome",
      (socket) => socket.write(frame("control", new Uint8Array(0))),
      "control-message",
      /unexpected \w+ frame/,
    ],
    [
      "a server that announces more than a challenge",
      (socket) => socket.write(withLength(frame("challenge", new Uint8Array(0)), 2n ** 20n)),
      "frame-length",
      /announces 1048576 bytes, at most 1024/,
    ],
    [
      "a server that sends a welcome without a challenge",
      (socket) => socket.write(frame("welcome", new Uint8Array(0))),
      "control-message",
      /unexpected \w+ frame/,
    ],
    [
      "a server with an invalid challenge",
      (socket) => socket.write(frame("challenge", new Uint8Array(40))),
      "control-message",
      /is not a challenge/,
    ],
  ])("such as %s, is detected", async (_, answer, code, message) => {
    const address = await impostorWith(answer);
    const error = await failureOf(
      openMember({ address, ranks: [0], addresses: [{ host: "a", port: 1 }], worldSize: 1, job, build, secret }),
    );
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });

  test("that never answers a hello is given up at the deadline", async () => {
    const address = await impostorWith(() => {});
    const error = await failureOf(
      openMember({
        address,
        ranks: [0],
        addresses: [{ host: "a", port: 1 }],
        worldSize: 1,
        job,
        build,
        secret,
        joinTimeoutMilliseconds: 200,
      }),
    );
    expect(error.message).toMatch(/found no coordinator .* within 0.2 s \(no answer to a hello/);
  });
});

describe("a process ends without being stopped", () => {
  test.each(["leave", "forget"] as const)("after it has joined, with %s", async (after) => {
    const { joining, coordinator } = await host(1);
    const { code, stdout } = await startChild(opened, { join: joining([0]), after }).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "complete\n" });
    await coordinator.close();
  });

  test("after all ranks have joined the rendezvous that it hosts", async () => {
    const child = startChild(opened, { host: { worldSize: 1, job, build, secret }, after: "forget" });
    const port = Number(await child.output(/^listening (\d+)$/m));
    const member = await openMember({
      address: { host: "127.0.0.1", port },
      ranks: [0],
      addresses: [{ host: "a", port: 1 }],
      worldSize: 1,
      job,
      build,
      secret,
    });
    opened.add(() => member.close());
    expect((await child.ended).code).toBe(0);
  });
});

/** Starts a server that runs `answer` when it receives the first bytes of a connection. */
async function impostorWith(answer: (socket: Socket) => void): Promise<{ host: string; port: number }> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  }).listen(0, "127.0.0.1");
  opened.add(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}
