import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { X509Certificate } from "node:crypto";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { execute, scratchBytes } from "../src/execute.ts";
import type { LinkListener } from "../src/network/link-listener.ts";
import type { Refusal } from "../src/network/link-options.ts";
import type { NetworkWorld } from "../src/network/network-transport.ts";
import { listenByTls, type TlsLinkOptions } from "../src/network/tls.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import type { Coordinator } from "../src/rendezvous/coordinator.ts";
import { hostRendezvous } from "../src/rendezvous/host.ts";
import { joinRendezvous } from "../src/rendezvous/join.ts";
import type { Member } from "../src/rendezvous/member.ts";
import { readTlsIdentity } from "../src/security/identity-files.ts";
import { type TlsFiles, type TlsIdentity, tlsClientOptions } from "../src/security/tls-identity.ts";
import { makeAuthority } from "./network-certificates.ts";
import { Cable } from "./network-proxy.ts";
import { openWorlds, secret } from "./network-worlds.ts";
import { parametersOf } from "./world.ts";

// Renewal and revocation of certificates while connections are open, over real sockets.

const authority = makeAuthority();
const reloadMilliseconds = 200;
let folder: string;
const closing: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-renewal-"));
});
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  rmSync(folder, { recursive: true });
});

const put = (path: string, text: string): void => {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
};

/** TLS certificate, key and authority of one test process, stored in separate files. */
class Holder {
  readonly #uris: readonly string[];
  readonly #files: Required<TlsFiles>;
  certificate = "";

  constructor(name: string, uris: readonly string[]) {
    const own = join(folder, name);
    mkdirSync(own);
    this.#uris = uris;
    this.#files = {
      certificate: join(own, "a.pem"),
      key: join(own, "a.key.pem"),
      authority: join(own, "authority.pem"),
      revoked: join(own, "revoked.pem"),
    };
    this.renew();
  }

  renew(): void {
    const issued = authority.issue(this.#uris);
    this.certificate = issued.certificate;
    put(this.#files.key, issued.key);
    put(this.#files.authority, issued.authority);
    put(this.#files.certificate, issued.certificate);
  }

  /** Writes a revocation list that contains the given certificates. */
  refuse(certificates: readonly string[], number = 1): void {
    put(this.#files.revoked, authority.revoke(certificates, { number }));
  }

  get identity(): TlsIdentity {
    return readTlsIdentity(this.#files);
  }
}
const ofRank = (rank: number): Holder => new Holder(`rank-${rank}`, [`skein:rank:${rank}`]);

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 150)); // longer than the interval between reloads

const serialOf = (certificate: string): string => new X509Certificate(certificate).serialNumber;

/** Returns the certificate that a listener presents to a peer with this identity. */
const presentedAt = async (
  address: { readonly host: string; readonly port: number },
  identity: TlsIdentity,
  expected: Parameters<typeof tlsClientOptions>[1],
): Promise<string> => {
  const socket = connectTls({ ...tlsClientOptions(identity, expected), ...address });
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const { serialNumber } = socket.getPeerX509Certificate()!;
  socket.destroy();
  return serialNumber;
};

describe("links", () => {
  const ring = algorithms.find(({ name }) => name === "ring-all-reduce")!;
  const sums = async (worlds: readonly NetworkWorld[], tag: number): Promise<readonly number[][]> =>
    Promise.all(
      worlds.map(async ({ transports }, rank) => {
        const schedule = ring.schedule(parametersOf(rank, worlds.length, 1000));
        const output = new Uint8Array(4000);
        const scratch = new Uint8Array(scratchBytes(schedule, "f32"));
        const input = new Uint8Array(Float32Array.from({ length: 1000 }, (_, i) => i + rank).buffer);
        await execute(schedule, { input, output, scratch, dtype: "f32", tag }, transports[0]!, plainArithmetic());
        return [...new Float32Array(output.buffer)];
      }),
    );
  const expectSums = async (worlds: readonly NetworkWorld[], tag: number): Promise<void> => {
    const ranks = (worlds.length * (worlds.length - 1)) / 2;
    const expected = Array.from({ length: 1000 }, (_, i) => worlds.length * i + ranks);
    for (const output of await sums(worlds, tag)) expect(output).toEqual(expected);
  };
  const open = async (holders: readonly Holder[], cables?: Cable[]): Promise<readonly NetworkWorld[]> => {
    const worlds = await openWorlds(holders.length, {
      heartbeat: { intervalMilliseconds: 1000, lossMilliseconds: 3000 }, // detects a disconnection behind a cable
      over: "tls",
      tlsOf: (rank) => ({ tls: holders[rank]!.identity, reloadMilliseconds }),
      ...(cables && {
        route: async (_, to) => {
          const { cable, address } = await Cable.to(to);
          cables.push(cable);
          closing.push(() => cable.remove());
          return address;
        },
      }),
    });
    closing.push(...worlds.map((world) => () => world.close()));
    return worlds;
  };

  test("stay open while files are renewed, and are re-established with the new ones once the old ones are invalid", async () => {
    const holders = [ofRank(0), ofRank(1)];
    const old = holders.map(({ certificate }) => certificate);
    const cables: Cable[] = [];
    const worlds = await open(holders, cables);
    await expectSums(worlds, 1);
    for (const holder of holders) holder.renew();
    await new Promise((resolve) => setTimeout(resolve, 2 * reloadMilliseconds));
    await expectSums(worlds, 2); // over connections that were established with the old certificates
    for (const cable of cables) {
      cable.down = true;
      cable.cut();
    }
    await until(() => cables.every(({ numRejected }) => numRejected > 0));
    for (const holder of holders) holder.refuse(old);
    await rest();
    for (const cable of cables) cable.down = false;
    await expectSums(worlds, 3);
    expect(worlds.map((world) => world.failure())).toEqual([undefined, undefined]);
  });

  test("of a rank whose certificate is revoked are closed, and all others name the rank", async () => {
    const holders = [0, 1, 2].map(ofRank);
    const worlds = await open(holders, []);
    await expectSums(worlds, 1);
    const failures = Promise.all(worlds.map((world) => new Promise<Error>((resolve) => world.onFailure(resolve))));
    holders[0]!.refuse([holders[1]!.certificate]); // rank 2 is informed by rank 0
    const [first, revoked, third] = await failures;
    for (const error of [first, third]) {
      expect(error).toMatchObject({ code: "peer-revoked", kind: "user", peer: 1 });
      expect(error!.message).toMatch(
        /rank 1 was cut off during no collective|rank 1 was cut off during collective \d+/,
      );
      expect(error!.message).toMatch(/its certificate \(of rank 1, serial number [0-9A-F]+\) was revoked/);
    }
    expect(revoked).toMatchObject({ code: expect.stringMatching(/^peer-(lost|revoked)$/) });
  });

  test("are not re-established with a rank whose certificate was revoked while a connection was broken", async () => {
    const holders = [ofRank(0), ofRank(1)];
    const cables: Cable[] = [];
    const worlds = await open(holders, cables);
    const failed = new Promise<Error>((resolve) => worlds[0]!.onFailure(resolve));
    for (const cable of cables) {
      cable.down = true;
      cable.cut();
    }
    await until(() => cables.every(({ numRejected }) => numRejected > 0));
    holders[0]!.refuse([holders[1]!.certificate]);
    await rest();
    for (const cable of cables) cable.down = false;
    expect(await failed).toMatchObject({ code: "peer-revoked", peer: 1 });
    expect((await failed).message).toMatch(/its certificate was revoked/);
  });

  const listen = async (
    rank: number,
    options: Partial<TlsLinkOptions> & Pick<TlsLinkOptions, "tls">,
  ): Promise<LinkListener> => {
    const listener = await listenByTls({
      rank,
      worldSize: 2,
      job: "job",
      build: "build",
      secret,
      connectMilliseconds: 5000,
      reloadMilliseconds,
      ...options,
    });
    closing.push(() => listener.close());
    return listener;
  };

  test("are not established with a rank whose certificate is revoked", async () => {
    const holders = [ofRank(0), ofRank(1)];
    const late = holders[1]!.identity; // it does not know about the revocation
    holders[0]!.refuse([holders[1]!.certificate]);
    const [zero, one] = [await listen(0, { tls: holders[0]!.identity }), await listen(1, { tls: late })];
    const linking = one.connect([{ rank: 0, host: zero.host, port: zero.port }]);
    linking.catch(() => undefined);
    await expect(zero.connect([{ rank: 1, host: one.host, port: one.port }])).rejects.toMatchObject({
      code: "peer-identity",
      message: expect.stringMatching(/^rank 0 does not link with rank 1 at .*: its certificate was revoked$/),
    });
    await one.close();
    await expect(linking).rejects.toMatchObject({ code: expect.stringMatching(/^link-/) });
  });

  test("present and require the certificates in the files; a session from before the revocation of its certificate is rejected", async () => {
    const [holder, thief] = [ofRank(0), ofRank(1)];
    const refusals: Refusal[] = [];
    const listener = await listen(0, { tls: holder.identity, onRefused: (refusal) => refusals.push(refusal) });
    const address = { host: listener.host, port: listener.port };
    const stolen = thief.identity;
    expect(await presentedAt(address, stolen, { rank: 0 })).toBe(serialOf(holder.certificate));
    const knock = async (
      options: ConnectionOptions,
    ): Promise<{ readonly socket: TLSSocket; readonly ended: Promise<unknown> }> => {
      const socket = connectTls({ ...tlsClientOptions(stolen, { rank: 0 }), ...address, ...options });
      socket.on("error", () => undefined);
      closing.push(() => socket.destroy());
      const ended = new Promise((resolve) => socket.once("close", resolve));
      await Promise.race([ended, new Promise((resolve) => socket.once("secureConnect", resolve))]);
      return { socket, ended };
    };
    const { socket } = await knock({});
    const session = await new Promise<Buffer>((resolve) => socket.once("session", resolve));
    const trusted = await knock({ session });
    // Certificates are not checked in a resumed session. The session must not outlive the certificate with which it was
    // created.
    expect(trusted.socket.isSessionReused()).toBe(true);
    trusted.socket.destroy();
    refusals.length = 0;
    holder.renew();
    holder.refuse([thief.certificate]);
    await until(() => socket.destroyed); // the open connection is closed
    const again = await knock({ session });
    await again.ended;
    expect(again.socket.isSessionReused()).not.toBe(true);
    expect(refusals.map(({ error }) => error.message)).toContainEqual(
      expect.stringMatching(/^its certificate \(of rank 1, .*\) was revoked$/),
    );
    // The connection was rejected without waiting for the peer to identify itself, which would take up to five seconds.
    expect(refusals.map(({ error }) => (error as NodeJS.ErrnoException).code)).not.toContain("link-timeout");
    const friend = authority.issue(["skein:rank:1"]);
    expect(await presentedAt(address, friend, { rank: 0 })).toBe(serialOf(holder.certificate));
  });
});

describe("a rendezvous", () => {
  const common = { worldSize: 2, job: "job", build: "build", secret, reloadMilliseconds };
  const open = async (security: TlsIdentity): Promise<Coordinator> => {
    const coordinator = await hostRendezvous({ ...common, ranks: [0], security });
    closing.push(() => coordinator.close());
    return coordinator;
  };
  const join = async ({ address }: Coordinator, rank: number, security: TlsIdentity): Promise<Member> => {
    const member = await joinRendezvous({
      ...common,
      address,
      ranks: [rank],
      addresses: [{ host: "127.0.0.1", port: 1 }],
      security,
      joinTimeoutMilliseconds: 20_000,
    });
    closing.push(() => member.close());
    return member;
  };
  const parties = (): { readonly coordinator: Holder; readonly ranks: readonly Holder[] } => ({
    coordinator: new Holder("coordinator", ["skein:coordinator"]),
    ranks: [ofRank(0), ofRank(1)],
  });
  const lossOf = (witness: Pick<Member, "onLost">): Promise<unknown> =>
    new Promise((resolve) => witness.onLost(resolve));

  test("presents a renewed certificate to the next process, and rejects one with a revoked certificate until it has a new one", async () => {
    const { coordinator, ranks } = parties();
    const hosted = await open(coordinator.identity);
    expect(await presentedAt(hosted.address, ranks[0]!.identity, "coordinator")).toBe(
      serialOf(coordinator.certificate),
    );
    coordinator.renew();
    await rest();
    expect(await presentedAt(hosted.address, ranks[0]!.identity, "coordinator")).toBe(
      serialOf(coordinator.certificate),
    );
    coordinator.refuse([ranks[1]!.certificate]);
    await rest();
    await expect(join(hosted, 1, ranks[1]!.identity)).rejects.toMatchObject({
      code: "peer-identity",
      message: expect.stringMatching(/the certificate of the process was revoked; issue a new one/),
    });
    ranks[1]!.renew();
    const members = await Promise.all(ranks.map(({ identity }, rank) => join(hosted, rank, identity)));
    expect(members[0]!.roster).toHaveLength(2);
  });

  test("disconnects a process whose certificate is revoked, and notifies all processes, including that one", async () => {
    const { coordinator, ranks } = parties();
    const hosted = await open(coordinator.identity);
    const members = await Promise.all(ranks.map(({ identity }, rank) => join(hosted, rank, identity)));
    const losses = Promise.all([hosted, ...members].map(lossOf));
    coordinator.refuse([ranks[1]!.certificate]);
    for (const loss of await losses)
      expect(loss).toMatchObject({
        ranks: [1],
        revoked: true,
        reason: expect.stringMatching(/^its certificate \(of rank 1, serial number [0-9A-F]+\) was revoked$/),
      });
    await until(() => !hosted.send(1, "are you there?"));
    expect(hosted.send(0, "are you there?")).toBe(true);
  });

  test("is left by a process that reads that the coordinator's certificate was revoked", async () => {
    const { coordinator, ranks } = parties();
    const hosted = await open(coordinator.identity);
    const members = await Promise.all(ranks.map(({ identity }, rank) => join(hosted, rank, identity)));
    const loss = lossOf(members[1]!);
    ranks[1]!.refuse([coordinator.certificate]);
    expect(await loss).toMatchObject({
      ranks: [0],
      revoked: true,
      reason: expect.stringMatching(
        /the coordinator at .* was lost: its certificate \(of the coordinator, .*\) was revoked/,
      ),
    });
  });
});
