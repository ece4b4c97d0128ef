import { createPrivateKey, X509Certificate } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { parseRevocationList, readTlsIdentity, serialOf } from "@skein/collectives/node";
import { SkeinError } from "@skein/tensor-core";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { coordinatorFiles, rankFiles } from "./certificate-folder.ts";
import { addCertsCommand } from "./certs-command.ts";

let folder: string;
let authority: string;
let certificates: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-certs-"));
  authority = join(folder, "kept", "authority.pem");
  certificates = join(folder, "certs");
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Runs `skein-train certs`. Returns its output. */
const certs = async (...args: string[]): Promise<string> => {
  let printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const program = new Command("skein-train").option("--json").exitOverride();
  let code: number | undefined;
  addCertsCommand(program, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(["certs", ...args], { from: "user" });
  } finally {
    vi.restoreAllMocks();
  }
  expect(code).toBe(0);
  expect(printed).not.toContain("PRIVATE");
  return printed;
};
const init = (...args: string[]): Promise<string> =>
  certs(
    "init",
    "--ranks",
    "3",
    "--hosts",
    "node-1,10.0.0.2",
    "--output",
    certificates,
    "--keep-authority",
    authority,
    ...args,
  );
const renew = (...args: string[]): Promise<string> =>
  certs("renew", "--authority", authority, "--certificates", certificates, ...args);
const revoke = (...args: string[]): Promise<string> =>
  certs("revoke", "--authority", authority, "--certificates", certificates, ...args);

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error = await promise.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SkeinError);
  expect((error as SkeinError).kind).toBe("user");
  expect((error as SkeinError).message).not.toContain("\n");
  return (error as SkeinError).message;
};

const read = (path: string): X509Certificate => new X509Certificate(readFileSync(path));
const serialIn = (path: string): string => serialOf(read(path).serialNumber);
const texts = (): Record<string, string> =>
  Object.fromEntries(readdirSync(certificates).map((name) => [name, readFileSync(join(certificates, name), "utf8")]));
const listed = (): ReadonlySet<string> => {
  const { revoked, authority: file } = coordinatorFiles(certificates);
  return parseRevocationList(readFileSync(revoked, "utf8"), read(file)).serials;
};

describe("certs init --keep-authority", () => {
  test("keeps the key outside of the folder, readable only by its owner; the authority outlives the certificates", async () => {
    await init();
    expect(statSync(authority).mode & 0o777).toBe(0o600);
    const kept = readFileSync(authority, "utf8");
    const certificate = new X509Certificate(kept);
    expect(certificate.checkPrivateKey(createPrivateKey(kept))).toBe(true);
    expect(certificate.fingerprint256).toBe(read(coordinatorFiles(certificates).authority).fingerprint256);
    const days = (certificate.validToDate.getTime() - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(365);
    for (const [name, text] of Object.entries(texts()))
      if (name.endsWith(".key.pem")) expect(certificate.checkPrivateKey(createPrivateKey(text))).toBe(false);
  });

  test("rejects an authority file in the folder for hosts, by any path, and writes nothing", async () => {
    symlinkSync(folder, join(folder, "link"));
    for (const place of [
      certificates,
      join(certificates, "a.pem"),
      join(certificates, "deep", "a.pem"),
      join(certificates, "..a.pem"),
      join(folder, "link", "certs", "a.pem"),
    ])
      expect(await refusal(certs("init", "--ranks", "1", "--output", certificates, "--keep-authority", place))).toMatch(
        /is copied to the hosts/,
      );
    expect(readdirSync(folder)).toEqual(["link"]);
  });

  test("overwrites no authority, and rejects one that expires before its certificates", async () => {
    expect(await refusal(init("--days", "30", "--authority-days", "29"))).toMatch(
      /--authority-days 29: the authority would expire before its certificates/,
    );
    expect(await refusal(certs("init", "--ranks", "1", "--authority-days", "9", "--output", certificates))).toMatch(
      /add --keep-authority/,
    );
    await init();
    const before = readFileSync(authority, "utf8");
    rmSync(certificates, { recursive: true });
    expect(await refusal(init())).toMatch(/kept\/authority\.pem exists/);
    expect(readFileSync(authority, "utf8")).toBe(before);
    expect(existsSync(certificates)).toBe(false);
  });
});

describe("certs renew", () => {
  test("replaces keys and certificates by new ones for the same identities", async () => {
    await init("--ranks-per-process", "3");
    const before = texts();
    await renew("--days", "60");
    const after = texts();
    expect(Object.keys(after)).toEqual(Object.keys(before)); // no temporary file is left
    for (const [name, text] of Object.entries(after))
      expect(text === before[name], name).toBe(name === "authority.pem");
    for (const files of [coordinatorFiles(certificates), ...[0, 1, 2].map((rank) => rankFiles(certificates, rank))]) {
      const identity = readTlsIdentity(files); // throws if key and certificate do not match
      const [old, renewed] = [
        new X509Certificate(before[files.certificate.split("/").at(-1)!]!),
        new X509Certificate(identity.certificate),
      ];
      expect(renewed.subjectAltName).toBe(old.subjectAltName);
      expect(renewed.subject).toBe(old.subject);
      expect(renewed.serialNumber).not.toBe(old.serialNumber);
      expect(Math.round((renewed.validToDate.getTime() - Date.now()) / 86_400_000)).toBe(60);
      expect(statSync(files.key).mode & 0o777).toBe(0o600);
    }
    expect(statSync(authority).mode & 0o777).toBe(0o600);
  });

  test("renews only the named certificates", async () => {
    await init();
    const before = texts();
    await renew("--rank", "1-2");
    const changed = (): string[] =>
      Object.entries(texts()).flatMap(([name, text]) => (text === before[name] ? [] : [name]));
    expect(changed()).toEqual(["rank-1.key.pem", "rank-1.pem", "rank-2.key.pem", "rank-2.pem"]);
    await renew("--coordinator");
    expect(changed()).toContain("coordinator.pem");
    expect(changed()).not.toContain("rank-0.pem");
  });

  test.each<[string, () => unknown, string[], RegExp]>([
    [
      "an authority that expires before",
      () => undefined,
      ["--days", "366"],
      /expires on .* before certificates of 366 days would; use --days 36[45] at most/,
    ],
    ["a rank without files", () => undefined, ["--rank", "7"], /rank-7\.pem cannot be read/],
    ["a list of ranks that is none", () => undefined, ["--rank", "2-1"], /--rank 2-1: must be ranks such as/],
    [
      "an authority that others can read",
      () => chmodSync(authority, 0o644),
      [],
      /can be read by others, as its mode is 0644/,
    ],
    [
      "another's authority",
      () => writeFileSync(authority, readFileSync(join(folder, "other.pem"))),
      [],
      /is of a different authority than --authority/,
    ],
    [
      "a truncated authority",
      () => writeFileSync(authority, readFileSync(authority, "utf8").split("list ")[0]!),
      [],
      /is truncated/,
    ],
    [
      "an authority with an unknown line",
      () => appendFileSync(authority, "issued 12 soon skein:rank:0\n"),
      [],
      /has a line that skein-train certs did not write/,
    ],
    ["an authority that is none", () => writeFileSync(authority, "issued"), [], /holds no private key/],
    ["an authority that is not there", () => rmSync(authority), [], /cannot be read \(ENOENT/],
    ["a folder that is not there", () => rmSync(certificates, { recursive: true }), [], /cannot be read \(ENOENT/],
    [
      "an authority that is in use",
      () => writeFileSync(`${authority}.lock`, ""),
      [],
      /another skein-train certs command is using it/,
    ],
  ])("rejects %s in one line, and replaces nothing", async (_, spoil, args, message) => {
    await init();
    await certs(
      "init",
      "--ranks",
      "1",
      "--output",
      join(folder, "others"),
      "--keep-authority",
      join(folder, "other.pem"),
    );
    spoil();
    const before = existsSync(certificates) ? texts() : {};
    expect(await refusal(renew(...args))).toMatch(message);
    expect(existsSync(certificates) ? texts() : {}).toEqual(before);
    expect(existsSync(`${authority}.lock`)).toBe(message.source.includes("is using it"));
  });

  test("gives a cure when the authority is about to expire", async () => {
    const { makeAuthority, issueCertificate, pemOfKey } = await import("./issue-certificate.ts");
    const { authorityText, recordOf } = await import("./authority-file.ts");
    await init();
    const late = await makeAuthority("skein", 0.5);
    const pem = `${late.certificate.toString("pem")}\n`;
    const { certificate } = await issueCertificate(late, { role: "rank", ranks: [0], hosts: [], days: 0.5 });
    writeFileSync(authority, authorityText(await pemOfKey(late.keys.privateKey), pem, [recordOf(certificate)], 0n), {
      mode: 0o600,
    });
    writeFileSync(coordinatorFiles(certificates).authority, pem);
    expect(await refusal(renew("--days", "1"))).toMatch(
      /create a new authority and all certificates with skein-train certs init, and start the run again/,
    );
  });
});

describe("certs revoke", () => {
  test("lists every certificate ever issued to a rank, and keeps it on the list", async () => {
    await init();
    const [stolen, other] = [1, 2].map((rank) => serialIn(rankFiles(certificates, rank).certificate)) as [
      string,
      string,
    ];
    await renew("--rank", "1");
    const renewed = serialIn(rankFiles(certificates, 1).certificate);
    expect(await revoke("--rank", "1")).toMatch(/Revoked 2 certificates; the list contains 2/);
    expect(listed()).toEqual(new Set([stolen, renewed]));
    await renew("--rank", "1");
    expect(() => readTlsIdentity(rankFiles(certificates, 1))).not.toThrow(); // the new certificate is valid
    expect(await revoke("--rank", "2")).toMatch(/the list contains 3/);
    expect(listed()).toEqual(new Set([stolen, renewed, other]));
    expect(() => readTlsIdentity(rankFiles(certificates, 2))).toThrow(
      /rank-2\.pem was revoked, as .*revoked\.pem says; issue a new one/,
    );
    expect(() =>
      createSecureContext({ crl: readFileSync(coordinatorFiles(certificates).revoked, "utf8") }),
    ).not.toThrow();
  });

  test("lists all certificates of a rank if several ranks share a process", async () => {
    await certs(
      "init",
      "--ranks",
      "4",
      "--ranks-per-process",
      "2",
      "--output",
      certificates,
      "--keep-authority",
      authority,
    );
    await revoke("--rank", "3");
    expect(listed()).toEqual(new Set([2, 3].map((rank) => serialIn(rankFiles(certificates, rank).certificate))));
  });

  test("revokes certificates of the coordinator, and of files elsewhere", async () => {
    await init();
    const copy = join(folder, "found.pem");
    writeFileSync(copy, readFileSync(rankFiles(certificates, 0).certificate));
    await renew("--rank", "0");
    expect(await revoke("--certificate", copy)).not.toContain("--coordinator");
    expect(listed()).toEqual(new Set([serialIn(copy)]));
    expect(await revoke("--rank", "0", "--coordinator")).toMatch(/Revoked 2 certificates; the list contains 3/);
    expect(await revoke("--coordinator")).toMatch(/No further certificate was revoked; the list contains 3/);
    expect(await revoke("--rank", "0")).toMatch(/add --coordinator if that host is lost/);
  });

  test("keeps all entries of the list when the authority's file is restored from a copy", async () => {
    await init();
    const copy = readFileSync(authority);
    await revoke("--rank", "0");
    const number = (): bigint =>
      parseRevocationList(
        readFileSync(coordinatorFiles(certificates).revoked, "utf8"),
        read(coordinatorFiles(certificates).authority),
      ).number!;
    const before = number();
    writeFileSync(authority, copy);
    await revoke("--rank", "1");
    expect(listed()).toEqual(new Set([0, 1].map((rank) => serialIn(rankFiles(certificates, rank).certificate))));
    expect(number()).toBeGreaterThan(before);
    rmSync(coordinatorFiles(certificates).revoked); // the next list is computed from the authority file alone
    await revoke("--rank", "2");
    expect(listed().size).toBe(2); // only the removed list contained rank 0
  });

  test.each<[string, string[], RegExp]>([
    ["nothing", [], /no certificate is given; add --rank/],
    ["a rank that there is not", ["--rank", "9"], /has never signed a certificate of skein:rank:9/],
    ["a certificate of another authority", ["--certificate", "other"], /was not signed by --authority/],
    ["the authority itself", ["--certificate", "authority"], /was not signed by --authority/],
  ])("rejects %s in one line, and writes nothing", async (_, args, message) => {
    await init();
    await certs("init", "--ranks", "1", "--output", join(folder, "others"));
    const paths: Record<string, string> = {
      other: rankFiles(join(folder, "others"), 0).certificate,
      authority: coordinatorFiles(certificates).authority,
    };
    const before = readFileSync(authority, "utf8");
    expect(await refusal(revoke(...args.map((arg) => paths[arg] ?? arg)))).toMatch(message);
    expect(existsSync(coordinatorFiles(certificates).revoked)).toBe(false);
    expect(readFileSync(authority, "utf8")).toBe(before);
  });
});
