import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { ringAllReduce } from "../src/algorithms/ring-all-reduce.ts";
import { CollectiveError, CollectiveTimeoutError, PeerLostError, RanksDisagreeError } from "../src/errors.ts";
import { execute } from "../src/execute.ts";
import { emulatedLinks } from "../src/network/emulated-links.ts";
import type { NetworkWorld } from "../src/network/network-transport.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import { crc32c } from "../src/wire/crc32c.ts";
import { SkeinError } from "@skein/tensor-core";
import { Cable } from "./network-proxy.ts";
import { openWorlds, type TestWorldOptions } from "./network-worlds.ts";
import { parametersOf } from "./world.ts";

const open: NetworkWorld[] = [];
const cables: Cable[] = [];
const opened = async (worldSize: number, options: TestWorldOptions = {}): Promise<readonly NetworkWorld[]> => {
  const worlds = await openWorlds(worldSize, options);
  open.push(...worlds);
  return worlds;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((world) => world.close()));
  await Promise.all(cables.splice(0).map((cable) => cable.remove()));
});

/** Routes the connections selected by `through` over cables of the test. */
const withCables = (
  through: (from: number, to: number) => boolean,
): { route: NonNullable<TestWorldOptions["route"]>; laid: Map<string, Cable> } => {
  const laid = new Map<string, Cable>();
  return {
    laid,
    route: async (from, to) => {
      if (!through(from, to.rank)) return to;
      const { cable, address } = await Cable.to(to);
      cables.push(cable);
      laid.set(`${from}-${to.rank}`, cable);
      return address;
    },
  };
};

const values = (rank: number, n: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => (i % 97) + rank * 1000);

/** Repeats an all-reduce until it fails. All earlier results must be correct. */
const allReduceUntilFailure = async (
  world: NetworkWorld,
  worldSize: number,
  n: number,
  most = 10_000,
): Promise<unknown> => {
  const transport = world.transports[0]!;
  const schedule = ringAllReduce.schedule(parametersOf(transport.rank, worldSize, n));
  for (let tag = 1; tag <= most; tag++) {
    const vector = values(transport.rank, n);
    const bytes = new Uint8Array(vector.buffer);
    try {
      await execute(schedule, { input: bytes, output: bytes, dtype: "f32", tag }, transport, plainArithmetic());
    } catch (error) {
      return error;
    }
    const wrong = vector.findIndex(
      (value, i) => value !== (i % 97) * worldSize + (1000 * worldSize * (worldSize - 1)) / 2,
    );
    if (wrong >= 0) throw new Error(`a wrong sum: element ${wrong} is ${vector[wrong]}`);
  }
  return "no failure";
};

const failures = (worlds: readonly NetworkWorld[], n = 20_000, most = 10_000): Promise<unknown[]> =>
  Promise.all(worlds.map((world) => allReduceUntilFailure(world, worlds.length, n, most)));

const failureOf = (world: NetworkWorld): Promise<CollectiveError> => new Promise((resolve) => world.onFailure(resolve));

const named = (error: unknown): [string, number] => {
  expect(error).toBeInstanceOf(CollectiveError);
  const { code, peer } = error as CollectiveError;
  return [code, peer];
};

const quick = { heartbeat: { intervalMilliseconds: 100, lossMilliseconds: 400 }, graceMilliseconds: 100 };

test("a permanently cut cable: both ends name each other, the third rank one of them, on all lanes", async () => {
  const { route, laid } = withCables((from, to) => from + to === 1);
  const worlds = await opened(3, { route });
  setTimeout(() => {
    for (const cable of laid.values()) cable.sever();
  }, 50);
  const errors = await failures(worlds);
  expect(errors.map(named)).toEqual([
    ["peer-lost", 1],
    ["peer-lost", 0],
    ["peer-lost", expect.toBeOneOf([0, 1])],
  ]);
  for (const [rank, world] of worlds.entries()) {
    for (const { send, receive } of world.transports) {
      expect(() => send((rank + 1) % 3, 1, new Uint8Array(4))).toThrow(PeerLostError);
      expect(() => receive((rank + 1) % 3, 1, 4)).toThrow(PeerLostError);
    }
    expect(world.failure()).toMatchObject({ code: "peer-lost" });
  }
});

test.each(["tcp", "tls"] as const)("a pulled cable, without an end of the connection (%s)", async (over) => {
  const { route, laid } = withCables((from, to) => from + to === 1);
  const worlds = await opened(2, { over, route, ...quick });
  setTimeout(() => {
    for (const cable of laid.values()) cable.freeze();
  }, 50);
  const errors = await failures(worlds);
  expect(errors.map(named)).toEqual([
    ["peer-lost", 1],
    ["peer-lost", 0],
  ]);
  expect((errors[0] as Error).message).toMatch(/nothing was received from it for \d+ ms/);
});

test("a cable with a delay of more than three heartbeats loses no rank", { tags: "full" }, async () => {
  const { route, laid } = withCables((from, to) => from + to === 1);
  const worlds = await opened(2, { route });
  for (const cable of laid.values()) cable.delayMilliseconds = 4000;
  expect(await failures(worlds, 1000, 1)).toEqual(["no failure", "no failure"]);
  for (const cable of laid.values()) cable.delayMilliseconds = 0;
});

test("a cable that is pulled while no rank waits", async () => {
  const { route, laid } = withCables((from, to) => from + to === 1);
  const worlds = await opened(2, { route, ...quick });
  const failures = worlds.map(failureOf);
  for (const cable of laid.values()) cable.freeze();
  expect((await Promise.all(failures)).map(named)).toEqual([
    ["peer-lost", 1],
    ["peer-lost", 0],
  ]);
});

test("a process that is killed while no rank waits for it: its connections end without a goodbye", async () => {
  const { route, laid } = withCables((from, to) => from + to === 1);
  const worlds = await opened(2, { route });
  const failures = worlds.map(failureOf);
  for (const cable of laid.values()) cable.sever();
  const errors = await Promise.all(failures);
  expect(errors.map(named)).toEqual([
    ["peer-lost", 1],
    ["peer-lost", 0],
  ]);
  expect(errors[0]!.message).toMatch(/closed without a goodbye, and no process listens at 127.0.0.1:\d+ any more/);
});

test("an emulated cable that is cut carries no heartbeats", async () => {
  const worlds = await opened(2, {
    ...quick,
    wrap: (links, rank) =>
      emulatedLinks(links, { direction: () => (rank === 0 ? { lostAfterSeconds: 0.05 } : undefined) }),
  });
  const [first, second] = await failures(worlds);
  expect(named(second)).toEqual(["peer-lost", 0]);
  expect(named(first)).toEqual(["peer-lost", 1]); // reported by rank 1, whose message still arrives
});

test("a rank that vanishes is named by all, also by ranks that lose another one first", async () => {
  const { route, laid } = withCables((from, to) => from === 2 || to === 2);
  const worlds = await opened(4, { route });
  const results = [0, 1, 3].map(async (rank) => {
    const error = await allReduceUntilFailure(worlds[rank]!, 4, 20_000);
    if (rank === 0) await worlds[0]!.close(); // closes before other ranks may have decided
    return named(error);
  });
  void allReduceUntilFailure(worlds[2]!, 4, 20_000).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const cable of laid.values()) cable.sever();
  expect(await Promise.all(results)).toEqual([
    ["peer-lost", 2],
    ["peer-lost", 2],
    ["peer-lost", 2],
  ]);
});

test("if one rank does not start a ring collective, all ranks name it after the timeout", async () => {
  const worlds = await opened(4, { timeoutMilliseconds: 400, graceMilliseconds: 200 });
  const errors = await Promise.all([0, 1, 3].map((rank) => allReduceUntilFailure(worlds[rank]!, 4, 1000)));
  for (const error of errors) {
    expect(error).toBeInstanceOf(CollectiveTimeoutError);
    expect(named(error)).toEqual(["collective-timeout", 2]);
  }
  expect(await failureOf(worlds[2]!)).toBeInstanceOf(CollectiveTimeoutError);
});

test("a receiver that receives nothing is named when the sender waits", async () => {
  const [a, b] = await opened(2, { timeoutMilliseconds: 300, graceMilliseconds: 50 });
  const handle = a!.transports[1]!.send(1, 3, new Uint8Array(50_000_000));
  await expect(a!.transports[1]!.whenSent(handle)).rejects.toMatchObject({ code: "collective-timeout", peer: 1 });
  expect(await failureOf(b!)).toMatchObject({ code: "collective-timeout", peer: 1 });
});

test("the report of the process monitor takes precedence", async () => {
  const worlds = await opened(3, quick);
  const running = failures(worlds);
  for (const world of worlds) world.reportLost(2, "exited with signal 9");
  const errors = await running;
  expect(errors.map(named)).toEqual([
    ["peer-lost", 2],
    ["peer-lost", 2],
    ["peer-lost", expect.any(Number)],
  ]);
  expect((errors[0] as Error).message).toMatch(/rank 2 was lost during collective \d+: exited with signal 9/);
});

test("a rank that still needs a finished peer gets an error", async () => {
  const [a, b] = await opened(2, quick);
  const waiting = allReduceUntilFailure(a!, 2, 1000);
  await b!.close();
  expect(named(await waiting)).toEqual(["peer-lost", 1]);
});

test("ranks that start different collectives both get an error", async () => {
  const [a, b] = await opened(2, quick);
  a!.transports[0]!.send(1, 1, new Uint8Array(100));
  await expect(Promise.resolve(b!.transports[0]!.receive(0, 2, 100))).rejects.toBeInstanceOf(RanksDisagreeError);
  const failure = await failureOf(a!);
  expect(failure).toBeInstanceOf(RanksDisagreeError);
  expect(failure).toMatchObject({ rank: 0, peer: 1 });
});

describe("corruption in transit", () => {
  const collide = async (
    damage: Cable["damage"],
    socketsPerPair = 1,
    sums?: LinkOptions["sums"],
  ): Promise<unknown[]> => {
    const { route, laid } = withCables((from) => from === 0);
    let worlds: readonly NetworkWorld[];
    const link = {
      socketsPerPair,
      frameBytes: 10_000,
      earlyBytes: 40_000,
      connectMilliseconds: 700,
      handshakeMilliseconds: 300,
      ...(sums && { sums }),
    };
    try {
      const connecting = opened(2, {
        ...quick,
        link,
        route: async (from, to) => {
          const address = await route(from, to);
          const cable = laid.get("0-1");
          if (cable !== undefined) cable.damage = damage;
          return address;
        },
      });
      worlds = await connecting;
    } catch (error) {
      return [error];
    }
    return failures(worlds, 10_000, 20);
  };

  test("one flipped bit, anywhere, in either direction: a typed error, never a wrong sum", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("up", "down"),
        fc.oneof(fc.nat(700), fc.nat(300_000)),
        fc.nat(7),
        fc.integer({ min: 1, max: 2 }),
        async (direction, at, flip, sockets) => {
          // Few bytes travel in direction `up`: credit and heartbeats.
          const place = direction === "up" ? at % 700 : at;
          const errors = await collide({ direction, at: place, what: { flip } }, sockets);
          // A corrupted hello is dropped, and the connecting rank retries. A corruption of later bytes ends the world.
          const mustFail = direction === "down" && place > 1000;
          for (const error of errors) if (mustFail || error !== "no failure") expect(error).toBeInstanceOf(SkeinError);
        },
      ),
      { numRuns: 25 },
    );
  });

  test.each([
    ["a header", { flip: 3 }, 20_003, /checksum|frame|stream|peer/],
    ["a payload", { flip: 0 }, 25_000, /carries checksum \d+, its bytes have \d+/],
    [
      "silence within a frame",
      "freeze",
      25_000,
      /nothing was received from it for|closed without a goodbye|reports about rank/,
    ],
  ] as const)("%s", async (_, what, at, message) => {
    const errors = await collide({ direction: "down", at, what });
    expect(errors.map((error) => (error as CollectiveError).code)).toEqual(["peer-lost", "peer-lost"]);
    expect((errors[0] as Error).message).toMatch(message);
  });

  test("a flipped bit of a payload behind a proxy on loopback, where direct connections have no payload checksums", async () => {
    const errors = await collide({ direction: "down", at: 25_000, what: { flip: 0 } }, 1, "unless-direct");
    expect(errors.map((error) => (error as CollectiveError).code)).toEqual(["peer-lost", "peer-lost"]);
    expect((errors[0] as Error).message).toMatch(/carries checksum \d+, its bytes have \d+/);
  });

  test("a direct connection on loopback computes no payload checksums", async () => {
    let summed = 0;
    const checksum = (bytes: Uint8Array, previous?: number): number => {
      summed = Math.max(summed, bytes.byteLength);
      return crc32c(bytes, previous);
    };
    const worlds = await opened(2, { link: { sums: "unless-direct", checksum } });
    expect(await failures(worlds, 20_000, 3)).toEqual(["no failure", "no failure"]);
    expect(summed).toBeLessThan(1000); // bytes of the handshake
  });

  test("every connection ends within a frame after two complete ones: correct sums", async () => {
    expect(await collide({ direction: "down", at: 25_000, what: "end" })).toEqual(["no failure", "no failure"]);
  });
});
