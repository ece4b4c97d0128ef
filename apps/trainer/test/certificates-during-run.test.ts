import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { exitCodes } from "@skein/cli/node";
import { rankFiles, writeCertificates } from "@skein/launch/node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkpointBytes, checkpointNames, jobFolder, skeinTrain, start, startWith, stepLosses, until } from "./cli.ts";

// Certificates are renewed and revoked during a run, with the documented commands.

let folder: string;
let remove: () => void;
const closing: (() => unknown)[] = [];
beforeEach(async () => {
  ({ folder, remove } = jobFolder());
  await writeCertificates({
    folder: join(folder, "certs"),
    ranks: 2,
    hosts: [],
    authorityDays: 60,
    keepAuthority: join(folder, "authority.pem"),
  });
});
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  remove();
});

const certs = (command: string, ...args: string[]): ReturnType<typeof skeinTrain> =>
  skeinTrain(folder, "certs", command, "--authority", "authority.pem", "--certificates", "certs", ...args);
const overTls = ["--transport", "tls", "--certificates", "certs"];
const hasSaved = (): boolean => checkpointNames(join(folder, "run")).some((name) => name.startsWith("step-"));
const serials = (): string[] =>
  [0, 1].map(
    (rank) => new X509Certificate(readFileSync(rankFiles(join(folder, "certs"), rank).certificate)).serialNumber,
  );

/** Proxy of all data links, see dial-through-proxy.ts. */
class Proxy {
  down = false;
  /** Ports for which a connection was refused. */
  readonly turnedAway = new Set<number>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ noDelay: true }, (near) => {
    const [, , high, low] = near.localAddress!.replace("::ffff:", "").split(".").map(Number);
    const port = high! * 256 + low!;
    near.on("error", () => undefined);
    if (this.down) {
      this.turnedAway.add(port);
      near.resetAndDestroy();
      return;
    }
    const far = connect({ host: "127.0.0.1", port, noDelay: true });
    far.on("error", () => near.destroy());
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });

  listen(): Promise<number> {
    return new Promise((resolve) =>
      this.#server.listen(0, "0.0.0.0", () => resolve((this.#server.address() as AddressInfo).port)),
    );
  }

  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

test.runIf(process.platform === "linux")(
  "a run whose certificates are renewed continues with them when its links break, to the same bits",
  { tags: "full" },
  async () => {
    const steps = ["--steps", "600", "--set", "checkpoint.keep=100"];
    const alone = skeinTrain(folder, "run", "job.yaml", ...steps, "--output", "threads");
    const proxy = new Proxy();
    closing.push(() => proxy.close());
    const dialled = join(folder, "dialled");
    const env = {
      NODE_OPTIONS: `--import=${new URL("./dial-through-proxy.ts", import.meta.url).pathname}`,
      SKEIN_TEST_PROXY: String(await proxy.listen()),
      SKEIN_TEST_DIALLED: dialled,
    };
    const running = startWith({ env }, folder, "run", "job.yaml", ...steps, ...overTls, "--output", "run");
    const shown = (): string[] => (existsSync(dialled) ? readFileSync(dialled, "utf8").trim().split("\n") : []);
    const both = ([zero, one]: readonly string[]): string[] => [`${zero} ${one}`, `${one} ${zero}`].toSorted();
    await until(running, hasSaved);
    expect(shown().toSorted()).toEqual(both(serials()));
    proxy.down = true; // keeps the run going for the next steps of the test
    proxy.cut();
    await until(running, () => proxy.turnedAway.size === 2);
    expect((await certs("renew")).code).toBe(0);
    await pause(200); // a rank checks its files at most ten times a second, so its next read is after the renewal
    proxy.down = false;
    const { code, stderr } = await running.ended;
    expect([code, stderr.match(/going on from|stays in use|^\s+at .*/m)]).toEqual([0, null]);
    expect(shown().slice(2).toSorted()).toEqual(both(serials()));
    expect((await alone).code).toBe(0);
    expect(checkpointBytes(join(folder, "run"), 600)).toEqual(checkpointBytes(join(folder, "threads"), 600));
    expect(stepLosses(join(folder, "run"))).toEqual(stepLosses(join(folder, "threads")));
  },
);

test("a run with a revoked certificate ends, names the rank, and resumes only with a new one", async () => {
  const running = start(
    folder,
    "run",
    "job.yaml",
    "--steps",
    "1000000",
    "--set",
    "checkpoint.everySteps=30",
    ...overTls,
    "--output",
    "run",
  );
  await until(running, hasSaved);
  expect((await certs("revoke", "--rank", "1")).code).toBe(0);
  const { code, stderr } = await running.ended;
  expect(code).toBe(exitCodes.usage);
  expect(stderr).toMatch(
    /rank 1.*: its certificate \(of rank 1, serial number [0-9A-F]+\) was revoked; .* certs renew/,
  );
  expect(stderr).not.toMatch(/going on from|^\s+at /m);
  const refused = await skeinTrain(folder, "resume", "run");
  expect([refused.code, refused.stderr]).toEqual([
    exitCodes.usage,
    expect.stringMatching(/rank-1\.pem was revoked, as certs\/revoked\.pem says/),
  ]);
  expect((await certs("renew", "--rank", "1")).code).toBe(0);
  const resumed = start(folder, "resume", "run");
  const before = checkpointNames(join(folder, "run")).at(-1);
  await until(resumed, () => checkpointNames(join(folder, "run")).at(-1) !== before);
  resumed.child.kill("SIGINT");
  expect((await resumed.ended).code).toBe(exitCodes.interrupted);
});
