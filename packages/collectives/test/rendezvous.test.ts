import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openMember } from "../src/rendezvous/member.ts";
import { processesOf } from "../src/rendezvous/roster.ts";
import { randomSecret } from "../src/security/secret.ts";
import { startChild } from "./rendezvous-child.ts";
import { build, failureOf, host as hostIn, type Hosted, job, Opened, rest, secret, until } from "./rendezvous-world.ts";

const opened = new Opened();
afterEach(() => opened.close());
const host = (...args: Parameters<typeof hostIn> extends [Opened, ...infer Rest] ? Rest : never): Promise<Hosted> =>
  hostIn(opened, ...args);

describe("a rendezvous", () => {
  test("sends every process the addresses of all ranks, with numbers that do not depend on the order of joining", async () => {
    const { coordinator, join } = await host(4);
    const [c, a, b] = await Promise.all([join([3], { hostName: "there" }), join([0, 2]), join([1])]);
    const roster = await coordinator.ready;
    expect(roster).toEqual([
      { rank: 0, host: "127.0.0.1", port: 5000, hostName: "here", process: 0 },
      { rank: 1, host: "127.0.0.1", port: 5001, hostName: "here", process: 1 },
      { rank: 2, host: "127.0.0.1", port: 5002, hostName: "here", process: 0 },
      { rank: 3, host: "127.0.0.1", port: 5003, hostName: "there", process: 2 },
    ]);
    for (const member of [a, b, c]) expect(member!.roster).toEqual(roster);
    expect([a, b, c].map((member) => member!.process)).toEqual([0, 1, 2]);
    expect(processesOf(roster)).toEqual([[0, 2], [1], [3]]);
  });

  test("waits for a coordinator that starts later", async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, "close");
    const options = {
      address: { host: "127.0.0.1", port },
      ranks: [0],
      addresses: [{ host: "a", port: 1 }],
      worldSize: 1,
      job,
      build,
      secret,
    };
    const joined = openMember(options);
    await rest(100);
    await host(1, { port });
    const member = await joined;
    expect(member.roster.map(({ host }) => host)).toEqual(["a"]);
    await member.close();
  });

  // As after a pause of a host: a process that was abandoned wakes up, detects that the join was canceled, and ends.
  test("admits a process that came during an earlier start, once the earlier process is gone", async () => {
    const earlier = await host(1);
    const remnant = await earlier.join([0]);
    const again = openMember(earlier.joining([0]));
    await until(() => earlier.events.some(({ kind }) => kind === "refused"));
    await remnant.close();
    await earlier.coordinator.close();
    await host(1, { port: earlier.coordinator.address.port });
    await (await again).close();
  });

  test("fills in the address of a listener on all interfaces", async () => {
    const { join } = await host(1);
    const member = await join([0], { addresses: [{ host: "0.0.0.0", port: 77 }] });
    expect(member.roster[0]).toMatchObject({ host: "127.0.0.1", port: 77 });
  });

  test("delivers messages in both directions, including those sent before there is a listener", async () => {
    const { coordinator, join } = await host(3);
    const members = await Promise.all([join([0]), join([1, 2])]);
    coordinator.send(1, { early: true });
    members[1]!.send({ spans: [{ name: "step", seconds: 0.25 }], bytes: Uint8Array.of(1, 2, 3) });
    await rest(50);
    const heard: unknown[] = [];
    const got = new Promise<void>((resolve) => coordinator.onMessage((message) => (heard.push(message), resolve())));
    await got;
    expect(heard).toEqual([
      {
        process: 1,
        ranks: [1, 2],
        message: { spans: [{ name: "step", seconds: 0.25 }], bytes: Uint8Array.of(1, 2, 3) },
      },
    ]);
    const atMember: unknown[][] = [[], []];
    await Promise.all(
      members.map(
        (member, i) =>
          new Promise<void>((resolve) => {
            member!.onMessage((message) => {
              atMember[i]!.push(message);
              if (message === "all") resolve();
            });
            if (i === 1) coordinator.broadcast("all");
          }),
      ),
    );
    expect(atMember).toEqual([["all"], [{ early: true }, "all"]]);
  });
});

describe("messages", () => {
  test("of many megabytes arrive completely, and larger ones are rejected", async () => {
    const { coordinator, join } = await host(1);
    const member = await join([0]);
    const spans = Array.from({ length: 20_000 }, (_, i) => ({
      name: `matmul ${i % 7}`,
      begin: i * 0.001,
      seconds: 1e-4,
    }));
    const bytes = new Uint8Array(30 * 2 ** 20).map((_, i) => i % 251);
    const [up, down] = [
      new Promise((resolve) => coordinator.onMessage(({ message }) => resolve(message))),
      new Promise((resolve) => member.onMessage(resolve)),
    ];
    expect(member.send({ spans, bytes })).toBe(true);
    coordinator.broadcast({ spans, bytes });
    for (const message of (await Promise.all([up, down])) as { spans: unknown; bytes: Uint8Array }[]) {
      expect(message.spans).toEqual(spans);
      expect(Buffer.compare(message.bytes, bytes)).toBe(0);
    }
    const larger = new Uint8Array(64 * 2 ** 20);
    for (const send of [
      () => member.send(larger),
      () => coordinator.broadcast(larger),
      () => coordinator.send(0, larger),
    ])
      expect(send).toThrow(/control message of 671088\d\d bytes is larger than 67108864; send it in parts/);
    expect(() => coordinator.send(1, "x")).toThrow(/process 1 is not in a world of 1 processes/);
  });
});

describe("a process is refused with a reason", () => {
  test.each<[string, string, Parameters<Hosted["join"]>[1], readonly number[], RegExp]>([
    ["another job", "join-job", { job: "job-other" }, [1], /job-other.*job-5f0c2a.*same job file/],
    ["another build", "join-build", { build: "build-2" }, [1], /build-2.*build-1/],
    ["another world size", "join-world-size", { worldSize: 3 }, [1], /expects 3 ranks, the coordinator 2/],
    ["a rank out of range", "join-rank", {}, [2], /rank 2 cannot join a world of 2; ranks are 0 to 1/],
    ["a rank twice", "join-rank", {}, [1, 1], /ranks 1, 1, and one rank is given twice/],
  ])("for %s", async (_, code, different, ranks, message) => {
    const { join, events } = await host(2);
    const first = join([0]);
    await until(() => events.some(({ kind }) => kind === "joined"));
    const error = await failureOf(join(ranks, different));
    expect({ code: error.code, kind: error.kind }).toEqual({ code, kind: "user" });
    expect(error.message).toMatch(message);
    expect(events.filter(({ kind }) => kind === "refused").map((event) => event.message)).toEqual([
      expect.stringContaining(error.message),
    ]);
    await Promise.all([first, join([1])]); // The refused process did not disturb the rendezvous.
  });

  test("for another secret: it detects that the coordinator does not know its secret, and tells the coordinator", async () => {
    const { join, events } = await host(2);
    const error = await failureOf(join([1], { secret: randomSecret() }));
    expect({ code: error.code, kind: error.kind }).toEqual({ code: "peer-identity", kind: "user" });
    expect(error.message).toMatch(/does not know this job's secret; give every process the same SKEIN_SECRET/);
    await until(() => events.some(({ kind, message }) => kind === "dropped" && /same SKEIN_SECRET/.test(message)));
    await Promise.all([join([0]), join([1])]);
  });

  test.each([
    ["when its rank is taken", 2, "join-rank-taken", /rank 0 already joined from here/],
    ["when all have joined", 1, "join-late", /rank 0 joined after all 1 ranks had joined/],
  ])("%s, until its join timeout", async (_, worldSize, code, message) => {
    const { join, events } = await host(worldSize);
    const first = join([0]);
    await until(() => events.some(({ kind }) => kind === "joined"));
    const error = await failureOf(join([0], { joinTimeoutMilliseconds: 300 }));
    expect({ code: error.code, kind: error.kind }).toEqual({ code, kind: "environment" });
    expect(error.message).toMatch(message);
    expect(events.filter(({ kind }) => kind === "refused").length).toBeGreaterThan(1);
    if (worldSize === 2) await join([1]);
    await first; // The refused process did not disturb the rendezvous.
  });

  test("but not for its build if any build may join", async () => {
    const { join } = await host(1, { anyBuild: true });
    expect((await join([0], { build: "build-2" })).roster).toHaveLength(1);
  });
});

describe("ranks that do not join", () => {
  test("are named to everyone at the deadline", async () => {
    const { coordinator, join } = await host(8, { joinTimeoutMilliseconds: 2000 });
    const failures = await Promise.all([
      failureOf(coordinator.ready),
      ...[[0, 1, 2], [4], [6, 7]].map((ranks) => failureOf(join(ranks))),
    ]);
    for (const { code, message } of failures) {
      expect(code).toBe("rendezvous-timeout");
      expect(message).toMatch(/^ranks 3, 5 of 8 did not join within 2 s; .*joinTimeoutMilliseconds/);
    }
  });

  test("are not named if a rank that left joins again in time", async () => {
    const { coordinator, joining, join, events } = await host(2);
    const child = startChild(opened, { join: joining([1]), after: "stay" });
    await until(() => events.some(({ kind }) => kind === "joined"));
    child.kill();
    await child.ended;
    await Promise.all([join([0]), join([1])]);
    expect(await coordinator.ready).toHaveLength(2);
  });

  test("because there is no coordinator get an error with its address and the timeout", async () => {
    const { coordinator, joining } = await host(1);
    await coordinator.close();
    const error = await failureOf(openMember(joining([0], { joinTimeoutMilliseconds: 100 })));
    expect(error.code).toBe("rendezvous-timeout");
    expect(error.message).toMatch(
      /^rank 0 found no coordinator at 127.0.0.1:\d+ within 0.1 s \(connect ECONNREFUSED\)/,
    );
  });

  test("because the coordinator was closed, or knows of a lost rank, get that reason", async () => {
    const closed = await host(2);
    const joined = failureOf(closed.join([0]));
    await until(() => closed.events.some(({ kind }) => kind === "joined"));
    await closed.coordinator.close();
    expect((await joined).message).toMatch(/closed before rank 1 of 2 had joined/);
    const lost = await host(2);
    const waiting = failureOf(lost.join([0]));
    await until(() => lost.events.some(({ kind }) => kind === "joined"));
    lost.coordinator.reportLost(1, "its process ended with code 2");
    for (const error of await Promise.all([waiting, failureOf(lost.coordinator.ready)])) {
      expect(error.code).toBe("rendezvous-failed");
      expect(error.message).toMatch(/rank 1 of 2 was lost before all had joined: its process ended with code 2/);
    }
  });
});

describe("while ranks are missing", () => {
  const notice = { afterMilliseconds: 20, everyMilliseconds: 20 };

  test("the coordinator reports the missing ranks, again when they change, but never its own ranks", async () => {
    const { events, join, coordinator } = await host(4, { notice, ranks: [0] });
    const waitLines = (): string[] => events.filter(({ kind }) => kind === "waiting").map(({ message }) => message);
    await until(() => waitLines().length === 1);
    const joining = [join([0]), join([2])];
    await until(() => waitLines().length === 2);
    const where = `${coordinator.address.host}:${coordinator.address.port}`;
    expect(waitLines().map((line) => line.replace(/\d+ s$/, "… s"))).toEqual([
      `waiting for ranks 1–3 of 4 to join at ${where}; giving up in … s`,
      `waiting for ranks 1, 3 of 4 to join at ${where}; giving up in … s`,
    ]);
    await Promise.all([...joining, join([1, 3])]);
  });

  test("a process reports the coordinator's address and the last error; after its admission, that other ranks are missing", async () => {
    const earlier = await host(1);
    await earlier.coordinator.close();
    const { address } = earlier.coordinator;
    const where = `${address.host}:${address.port}`;
    const lines: string[] = [];
    const waiting = openMember(earlier.joining([0], { worldSize: 2, notice, onWaiting: (line) => lines.push(line) }));
    await until(() => lines.length > 0 && lines.at(-1)!.includes("refused"));
    expect(lines.at(-1)!.replace(/\d+ s/, "… s")).toBe(
      `rank 0: waiting for rank 0 at ${where} (connection refused, no process listens there yet); trying for … s more`,
    );
    const { join } = await host(2, { port: address.port });
    await until(() => lines.at(-1) === `rank 0: joined at ${where} and waiting for other ranks, which rank 0 names`);
    await join([1]);
    await (await waiting).close();
  });

  test("a process that is asked to end leaves at once, before or after its admission", async () => {
    const { coordinator, joining, events } = await host(3);
    const closed = await host(1);
    await closed.coordinator.close();
    const [searching, admitted] = [new AbortController(), new AbortController()];
    const searchFailure = failureOf(openMember(closed.joining([0], { signal: searching.signal })));
    const admittedFailure = failureOf(openMember(joining([1], { signal: admitted.signal })));
    const other = failureOf(openMember(joining([0])));
    await until(() => events.filter(({ kind }) => kind === "joined").length === 2);
    searching.abort();
    admitted.abort();
    for (const [leaving, rank] of [
      [searchFailure, 0],
      [admittedFailure, 1],
    ] as const)
      expect(await leaving).toMatchObject({
        code: "rendezvous-stopped",
        message: `rank ${rank} was asked to end before all ranks had joined`,
      });
    // All processes are notified, and no process reports a failure.
    for (const error of await Promise.all([other, failureOf(coordinator.ready)]))
      expect(error).toMatchObject({
        code: "rendezvous-stopped",
        message: "the run was stopped before rank 2 of 3 had joined: rank 1 was asked to end",
      });
  });

  test("a coordinator that is asked to end notifies the joined processes", async () => {
    const { coordinator, join, events } = await host(2);
    const waiting = failureOf(join([1]));
    await until(() => events.some(({ kind }) => kind === "joined"));
    await coordinator.close("the host of the run was asked to end");
    const message = "the run was stopped before rank 0 of 2 had joined: the host of the run was asked to end";
    for (const error of await Promise.all([waiting, failureOf(coordinator.ready)]))
      expect(error).toMatchObject({ code: "rendezvous-stopped", message });
  });
});

describe("beyond loopback without TLS", () => {
  test("a coordinator does not listen and a process does not join, unless `insecure` is set", async () => {
    for (const address of ["0.0.0.0", "::", "10.1.2.3", "node-1.cluster"]) {
      expect((await failureOf(host(1, { host: address }))).code).toBe("insecure");
      const joining = { ranks: [0], addresses: [{ host: "a", port: 1 }], worldSize: 1, job, build, secret };
      expect((await failureOf(openMember({ ...joining, address: { host: address, port: 1 } }))).code).toBe("insecure");
    }
    const { coordinator, join } = await host(1, { host: "0.0.0.0", insecure: true });
    const member = await join([0], { address: { host: "127.0.0.1", port: coordinator.address.port } });
    expect(member.roster).toHaveLength(1);
  });
});
