import { X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@skein/cli/node";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { coordinatorFiles, rankFiles } from "./certificate-folder.ts";
import { addCertsCommand } from "./certs-command.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-certs-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Runs `skein-train certs`. Returns its exit code and its output. */
const certs = async (...args: string[]): Promise<{ readonly code: number | undefined; readonly printed: string }> => {
  let code: number | undefined;
  let printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const program = new Command("skein-train").option("--json").exitOverride();
  addCertsCommand(program, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(["certs", "init", ...args], { from: "user" });
  } finally {
    vi.restoreAllMocks();
  }
  return { code, printed };
};

const read = (path: string): X509Certificate => new X509Certificate(readFileSync(path));
const rankNames = ["rank-0.key.pem", "rank-0.pem", "rank-1.key.pem", "rank-1.pem"];

describe("skein-train certs init", () => {
  test("writes certificates signed by the authority, each for the identity in its name", async () => {
    const output = join(folder, "certs");
    const { code, printed } = await certs(
      "--ranks",
      "2",
      "--hosts",
      "node-1, 10.0.0.2,*.job.svc",
      "--days",
      "7",
      "--output",
      output,
    );
    expect(code).toBe(0);
    expect(readdirSync(output)).toEqual(["authority.pem", "coordinator.key.pem", "coordinator.pem", ...rankNames]);
    for (const name of readdirSync(output)) expect(printed).toContain(join(output, name));
    expect(printed).toContain(`--certificates ${output}`);
    expect(printed).not.toContain("PRIVATE");

    const authority = read(coordinatorFiles(output).authority);
    expect(authority.ca).toBe(true);
    expect(authority.checkIssued(authority) && authority.verify(authority.publicKey)).toBe(true);
    const issued = [coordinatorFiles(output), rankFiles(output, 0), rankFiles(output, 1)].map(({ certificate }) =>
      read(certificate),
    );
    for (const certificate of issued) {
      expect(certificate.ca).toBe(false);
      expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
      expect(certificate.checkHost("node-1") ?? certificate.checkHost("0.job.svc")).toBeDefined();
      expect(certificate.checkHost("0.job.svc")).toBe("*.job.svc");
      expect(certificate.checkIP("10.0.0.2")).toBe("10.0.0.2");
      expect(certificate.checkHost("node-2")).toBeUndefined();
      expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
      expect(certificate.validToDate.getTime() - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
      expect(certificate.validToDate.getTime() - Date.now()).toBeLessThan(7.1 * 86_400_000);
      expect(certificate.validFromDate.getTime()).toBeLessThan(Date.now());
    }
    const uris = issued.map(({ subjectAltName }) =>
      subjectAltName!.split(", ").filter((name) => name.startsWith("URI:")),
    );
    expect(uris).toEqual([["URI:skein:coordinator"], ["URI:skein:rank:0"], ["URI:skein:rank:1"]]);
    expect(new Set([authority, ...issued].map(({ serialNumber }) => serialNumber)).size).toBe(4);
    expect(new Set(issued.map(({ publicKey }) => publicKey.export({ type: "spki", format: "pem" }))).size).toBe(3);
  });

  test("makes keys unreadable for others, and does not keep the authority's key", async () => {
    const output = join(folder, "certs");
    await certs("--ranks", "2", "--output", output);
    for (const name of readdirSync(output)) {
      const mode = statSync(join(output, name)).mode & 0o777;
      if (name.endsWith(".key.pem")) expect({ name, mode }).toEqual({ name, mode: 0o600 });
      else expect(readFileSync(join(output, name), "utf8")).not.toContain("PRIVATE KEY");
    }
    expect(statSync(output).mode & 0o077).toBe(0);
    const authority = read(coordinatorFiles(output).authority);
    for (const name of readdirSync(output).filter((name) => name.endsWith(".key.pem"))) {
      const { createPrivateKey } = await import("node:crypto");
      expect(authority.checkPrivateKey(createPrivateKey(readFileSync(join(output, name))))).toBe(false);
    }
  });

  test("names all ranks of a process in each of its files", async () => {
    const output = join(folder, "certs");
    const { printed } = await certs("--ranks", "4", "--ranks-per-process", "2", "--output", output);
    const uris = [0, 1, 2, 3].map((rank) => read(rankFiles(output, rank).certificate).subjectAltName);
    const [low, high] = ["URI:skein:rank:0, URI:skein:rank:1", "URI:skein:rank:2, URI:skein:rank:3"];
    expect(uris).toEqual([low, low, high, high]);
    expect(printed).toContain("on any host");
  });

  test("writes nothing if a file exists", async () => {
    const output = join(folder, "certs");
    mkdirSync(output);
    writeFileSync(rankFiles(output, 1).key, "precious");
    await expect(certs("--ranks", "2", "--output", output)).rejects.toThrow(
      /rank-1\.key\.pem exists, and a key is never overwritten/,
    );
    expect(readdirSync(output)).toEqual(["rank-1.key.pem"]);
    expect(readFileSync(rankFiles(output, 1).key, "utf8")).toBe("precious");
    expect((await certs("--ranks", "1", "--output", output)).code).toBe(0); // files with other names are allowed
  });

  test.each([
    [["--ranks", "0"], /--ranks 0: must be a whole number from 1/],
    [["--ranks", "two"], /--ranks two/],
    [["--ranks", "4", "--ranks-per-process", "3"], /3: does not divide 4 ranks/],
    [["--ranks", "2", "--days", "1e9"], /--days 1e9/],
    [["--ranks", "2", "--hosts", "a,b c"], /--hosts b c: is not a host name or address/],
    [["--ranks", "2", "--hosts", "a:8080"], /--hosts a:8080/],
  ])("rejects %j in one line, and writes nothing", async (args, message) => {
    const output = join(folder, "certs");
    const error = await certs(...args, "--output", output).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message).toMatch(message);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("prints JSON on request", async () => {
    const output = join(folder, "certs");
    const { printed } = await certs("--json", "--ranks", "1", "--output", output);
    expect(JSON.parse(printed)).toMatchObject({
      folder: output,
      files: expect.arrayContaining([rankFiles(output, 0).key]),
    });
  });
});
