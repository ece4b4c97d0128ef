import { once } from "node:events";
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { exitCodeOf } from "@skein/cli/node";
import {
  type Coordinator,
  hostRendezvous,
  type JoinOptions,
  joinRendezvous,
  randomSecret,
  readTlsIdentity,
  type RendezvousOptions,
  type TlsFiles,
  type TlsIdentity,
} from "@skein/collectives/node";
import { issueCertificate, makeAuthority } from "../src/certificates/issue-certificate.ts";
import { coordinatorFiles, rankFiles, writeCertificates } from "../src/certificates/certificate-folder.ts";
import { SkeinError } from "@skein/tensor-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

const secret = randomSecret();
const world = { worldSize: 2, job: "job", build: "build", secret };

let folder: string;
let other: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "skein-tls-"));
  other = join(folder, "other");
  await writeCertificates({ folder, ranks: 3, hosts: ["127.0.0.1", "localhost"] });
  await writeCertificates({ folder: other, ranks: 2, hosts: [] });
});
afterAll(() => rmSync(folder, { recursive: true }));

const closing: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const host = async (
  options: Partial<RendezvousOptions> = {},
): Promise<{ coordinator: Coordinator; events: string[] }> => {
  const events: string[] = [];
  const coordinator = await hostRendezvous({
    ...world,
    security: readTlsIdentity(coordinatorFiles(folder)),
    onEvent: ({ kind, message }) => events.push(`${kind} ${message}`),
    ...options,
  });
  closing.push(() => coordinator.close());
  return { coordinator, events };
};

const joining = (
  coordinator: Coordinator,
  ranks: readonly number[],
  security: TlsIdentity | undefined,
): JoinOptions => ({
  ...world,
  address: { host: "127.0.0.1", port: coordinator.address.port },
  ranks,
  addresses: ranks.map((rank) => ({ host: "127.0.0.1", port: 1 + rank })),
  joinTimeoutMilliseconds: 3000,
  ...(security === undefined ? {} : { security }),
});

const join2 = async (
  coordinator: Coordinator,
  ranks: readonly number[],
  files: TlsFiles | undefined,
): Promise<unknown> => {
  const member = await joinRendezvous(
    joining(coordinator, ranks, files === undefined ? undefined : readTlsIdentity(files)),
  );
  closing.push(() => member.close());
  return member.roster;
};

const failureOf = async (promise: Promise<unknown>): Promise<SkeinError> => {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(SkeinError);
  expect((error as SkeinError).message).not.toContain("\n");
  return error as SkeinError;
};

describe("a rendezvous over TLS", () => {
  test("listens beyond loopback without a flag, and accepts processes that prove their rank", async () => {
    const { coordinator } = await host({ host: "0.0.0.0" });
    const rosters = await Promise.all([0, 1].map((rank) => join2(coordinator, [rank], rankFiles(folder, rank))));
    expect(rosters).toEqual([await coordinator.ready, await coordinator.ready]);
  });

  test("accepts a process of two ranks with a certificate for both", async () => {
    const both = join(folder, "both");
    await writeCertificates({ folder: both, ranks: 2, ranksPerProcess: 2, hosts: [] });
    const { coordinator } = await host({ security: readTlsIdentity(coordinatorFiles(both)) });
    expect(await join2(coordinator, [0, 1], rankFiles(both, 1))).toHaveLength(2);
  });

  test("refuses a process with another rank's certificate, and reports it on both sides", async () => {
    const { coordinator, events } = await host();
    for (const [ranks, proven] of [
      [[1], 0],
      [[0, 1], 0],
    ] as const) {
      const error = await failureOf(join2(coordinator, ranks, rankFiles(folder, proven)));
      expect(error.code).toBe("peer-identity");
      expect(error.message).toMatch(/joins with ranks? .*, but its certificate proves to be rank 0;/);
      // The coordinator reports from its own thread. A slow process also reports that it is waiting.
      await expect.poll(() => events.join("\n")).toContain(error.message);
    }
    expect((await failureOf(join2(coordinator, [0], coordinatorFiles(folder)))).message).toMatch(
      /proves to be the coordinator/,
    );
  });

  test("refuses a process of another authority, and the process refuses such a coordinator", async () => {
    const { coordinator, events } = await host();
    const error = await failureOf(join2(coordinator, [0], rankFiles(other, 0)));
    expect(error.code).toBe("peer-identity");
    expect(error.message).toMatch(/TLS with 127\.0\.0\.1:\d+ failed .*use the files of one skein-train certs init/);
    // Identity of a client that trusts the coordinator, but presents a certificate of another authority.
    const mixed = {
      ...readTlsIdentity(rankFiles(other, 0)),
      authority: readTlsIdentity(rankFiles(folder, 0)).authority,
    };
    const shown = await failureOf(joinRendezvous(joining(coordinator, [0], mixed)));
    expect(shown.code).toBe("peer-identity");
    expect([error, shown].map(exitCodeOf)).toEqual([2, 2]); // as documented in the README: a retry would change nothing
    expect(shown.message).toMatch(/has no certificate of the coordinator's authority/);
    await expect
      .poll(() => events.map((event) => event.split(" ")[0]).filter((kind) => kind !== "waiting"))
      .toEqual(["dropped", "refused"]);
  });

  test("is not hosted by a rank: its process sees that the certificate is not the coordinator's", async () => {
    const { coordinator } = await host({ security: readTlsIdentity(rankFiles(folder, 2)) });
    const error = await failureOf(join2(coordinator, [0], rankFiles(folder, 0)));
    expect(error.code).toBe("peer-identity");
    expect(error.message).toMatch(/should be the coordinator, but its certificate proves to be rank 2/);
  });

  test("checks the host names of the coordinator's certificate", async () => {
    const authority = await makeAuthority("test", 1);
    const issued = await issueCertificate(authority, { role: "coordinator", days: 1, hosts: ["node-9.cluster"] });
    const rank = await issueCertificate(authority, { role: "rank", days: 1, ranks: [0], hosts: [] });
    const text = authority.certificate.toString("pem");
    const { coordinator } = await host({ security: { ...issued, authority: text } });
    const error = await failureOf(joinRendezvous(joining(coordinator, [0], { ...rank, authority: text })));
    expect(error.code).toBe("peer-identity");
    expect(error.message).toMatch(/is for other hosts .*node-9\.cluster.*--hosts naming 127\.0\.0\.1/);
  });

  test("is not disturbed by plain text, silence or an old TLS version", async () => {
    const { coordinator, events } = await host({ handshakeTimeoutMilliseconds: 300 });
    const { port } = coordinator.address;
    const plain = await failureOf(
      joinRendezvous({ ...joining(coordinator, [0], undefined), joinTimeoutMilliseconds: 300 }),
    );
    expect(plain.message).toMatch(/not-a-coordinator|both sides use TLS or neither|only one side uses TLS/);
    const silent = connect(port, "127.0.0.1");
    await once(silent, "close");
    const old = connectTls({ port, host: "127.0.0.1", maxVersion: "TLSv1.2", rejectUnauthorized: false });
    await once(old, "error");
    old.destroy();
    const nobody = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(nobody, "close"); // a client that presents no certificate and sends nothing
    await expect.poll(() => events.length).toBeGreaterThanOrEqual(3);
    expect(await Promise.all([0, 1].map((rank) => join2(coordinator, [rank], rankFiles(folder, rank))))).toHaveLength(
      2,
    );
  });

  test("requested from a coordinator without it ends at the deadline", async () => {
    const coordinator = await hostRendezvous(world);
    closing.push(() => coordinator.close());
    const options = {
      ...joining(coordinator, [0], readTlsIdentity(rankFiles(folder, 0))),
      joinTimeoutMilliseconds: 300,
    };
    const error = await failureOf(joinRendezvous(options));
    expect(error.code).toBe("rendezvous-timeout");
  });
});

describe("an unusable identity is reported before any connection", () => {
  test.each<[string, () => TlsFiles | Promise<TlsFiles>, RegExp]>([
    ["a missing file", () => rankFiles(folder, 77), /rank-77\.pem cannot be read \(ENOENT: .*\)/],
    [
      "a certificate without an end",
      () => ({ ...rankFiles(folder, 0), certificate: "/dev/zero" }),
      /\/dev\/zero cannot be read \(it is no regular/,
    ],
    [
      "a key that others can read",
      () => {
        const key = join(folder, "open.key.pem");
        copyFileSync(rankFiles(folder, 0).key, key);
        chmodSync(key, 0o644);
        return { ...rankFiles(folder, 0), key };
      },
      /private key .*open\.key\.pem can be read by others, as its mode is 0644; a key is its owner's alone: chmod 600 /,
    ],
    [
      "a key of another certificate",
      () => ({ ...rankFiles(folder, 0), key: rankFiles(folder, 1).key }),
      /is not the key of certificate/,
    ],
    [
      "another authority",
      () => ({ ...rankFiles(folder, 0), authority: rankFiles(other, 0).authority }),
      /was not signed by/,
    ],
    [
      "a key where a certificate should be",
      () => ({ ...rankFiles(folder, 0), certificate: rankFiles(folder, 0).key }),
      /holds no certificate in PEM form/,
    ],
    [
      "a certificate that has expired",
      async () => {
        const expired = join(folder, `expired`);
        await writeCertificates({ folder: expired, ranks: 1, hosts: [], days: -0.001 });
        return rankFiles(expired, 0);
      },
      /is valid from .* to .*, and now it is/,
    ],
    [
      "a damaged certificate",
      () => {
        const path = join(folder, "damaged.pem");
        writeFileSync(path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        return { ...rankFiles(folder, 0), certificate: path };
      },
      /damaged\.pem is damaged/,
    ],
  ])("%s", async (_, files, message) => {
    const which = await files();
    const error = await failureOf((async () => readTlsIdentity(which))());
    expect(error.code).toBe("certificate");
    expect(error.message).toMatch(message);
  });
});
