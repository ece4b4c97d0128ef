import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeAuthority } from "../../test/network-certificates.ts";
import { readTlsIdentity } from "./identity-files.ts";
import { RenewableIdentity } from "./renewable-identity.ts";
import type { TlsFiles, TlsIdentity } from "./tls-identity.ts";

const [authority, foreign] = [makeAuthority(), makeAuthority()];
const sound = Array.from({ length: 4 }, () => authority.issue(["skein:rank:3"]));
const unsound = {
  foreign: foreign.issue(["skein:rank:3"]),
  expired: authority.issue(["skein:rank:3"], -0.5),
  "another rank's": authority.issue(["skein:rank:4"]),
} as const;
const lists = {
  1: authority.revoke([], { number: 1 }),
  2: authority.revoke([unsound["another rank's"].certificate], { number: 2 }),
  3: authority.revoke([unsound["another rank's"].certificate, sound[3]!.certificate], { number: 3 }),
} as const;
const foreignList = foreign.revoke([sound[0]!.certificate], { number: 9 });

let folder: string;
let files: Required<TlsFiles>;
const opened: RenewableIdentity[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  folder = mkdtempSync(join(tmpdir(), "skein-renewal-"));
  const [certificate, key, ca, revoked] = ["rank-3.pem", "rank-3.key.pem", "authority.pem", "revoked.pem"].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  files = { certificate, key, authority: ca, revoked };
});
const clear = (): void => {
  for (const identity of opened.splice(0)) identity.close();
};
afterEach(() => {
  clear();
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

const write = (identity: Partial<TlsIdentity>): void => {
  for (const part of ["certificate", "key", "authority", "revoked"] as const) {
    const text = identity[part];
    if (text !== undefined) writeFileSync(files[part], text, { mode: 0o600 });
  }
};
const reloadMilliseconds = 5000;
const openAt = (identity: TlsIdentity): { readonly identity: RenewableIdentity; readonly notes: string[] } => {
  rmSync(files.revoked, { force: true });
  write(identity);
  chmodSync(files.key, 0o600);
  const notes: string[] = [];
  const opens = new RenewableIdentity(readTlsIdentity(files), {
    reloadMilliseconds,
    onNote: (line) => notes.push(line),
  });
  opened.push(opens);
  return { identity: opens, notes };
};
/** Advances the clock by 200 ms, and returns the identity that a new connection uses. */
const connect = (identity: RenewableIdentity): TlsIdentity => {
  vi.advanceTimersByTime(200);
  return identity.current();
};
const lookTwice = (): void => void vi.advanceTimersByTime(3 * reloadMilliseconds);

describe("files that are replaced while a process runs", () => {
  test("are used by the next connection, and give the same object until they change", () => {
    const { identity, notes } = openAt(sound[0]!);
    const first = connect(identity);
    expect(connect(identity)).toBe(first);
    write(sound[1]!);
    const second = connect(identity);
    expect(second).toMatchObject(sound[1]!);
    expect(connect(identity)).toBe(second);
    write({ revoked: lists[1] });
    expect(connect(identity)).toMatchObject({ ...sound[1]!, revoked: lists[1] });
    lookTwice();
    expect(notes).toEqual([]);
  });

  test("are checked at most ten times a second for incoming connections", () => {
    const { identity } = openAt(sound[0]!);
    const first = connect(identity);
    write(sound[1]!);
    expect(identity.current()).toBe(first);
    expect(connect(identity)).toMatchObject(sound[1]!);
  });

  type Fault = readonly [string, () => void, RegExp];
  test.each<Fault>([
    ["a key without its certificate", () => write({ key: sound[1]!.key }), /is not the key of certificate/],
    [
      "another authority",
      () => write(unsound.foreign),
      /is another authority than the one with which this process started/,
    ],
    [
      "an authority that has not signed",
      () => write({ ...sound[1]!, authority: unsound.foreign.authority }),
      /was not signed by/,
    ],
    ["an expired certificate", () => write(unsound.expired), /is valid from .* and now it is/],
    [
      "another rank's",
      () => write(unsound["another rank's"]),
      /proves to be rank 4, but this process has to prove to be rank 3/,
    ],
    ["a file that is gone", () => rmSync(files.certificate), /cannot be read \(ENOENT/],
    ["a file that is empty", () => write({ certificate: "" }), /holds no certificate/],
    ["a key that others can read", () => (write(sound[1]!), chmodSync(files.key, 0o644)), /can be read by others/],
    ["a list of another authority", () => write({ revoked: foreignList }), /was not signed by the authority/],
    ["a list that is cut short", () => write({ revoked: lists[2].slice(0, 120) }), /holds 0 lists/],
    [
      "a list that is older",
      () => (write({ revoked: lists[2] }), lookTwice(), write({ revoked: lists[1] })),
      /\(number 1, .*\) is older than the one in use \(number 2, /,
    ],
    [
      "a list that is gone",
      () => (write({ revoked: lists[2] }), lookTwice(), rmSync(files.revoked)),
      /revoked\.pem is gone; put it back/,
    ],
    [
      "this process's certificate on the list",
      () => (write(sound[3]!), lookTwice(), write({ revoked: lists[3] })),
      /was revoked and was not replaced/,
    ],
    [
      "a new certificate that is on the list",
      () => (write({ revoked: lists[3] }), lookTwice(), write(sound[3]!)),
      /rank-3\.pem was revoked, as .*revoked\.pem says/,
    ],
  ])("%s: keeps the identity in use, and reports the fault once in one line", (_, spoil, message) => {
    const { identity, notes } = openAt(sound[0]!);
    spoil();
    vi.advanceTimersByTime(200);
    const used = identity.current();
    expect(new X509Certificate(used.certificate).checkPrivateKey(createPrivateKey(used.key))).toBe(true);
    expect(notes).toEqual([]); // Files may still be in the middle of a change.
    for (let i = 0; i < 4; i++) lookTwice();
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(message);
    expect(notes[0]).not.toContain("\n");
    expect(identity.current()).toBe(used);
    write({ ...sound[2]!, revoked: lists[3] });
    chmodSync(files.key, 0o600);
    expect(connect(identity)).toMatchObject({ ...sound[2]!, revoked: lists[3] });
    lookTwice();
    expect(notes).toHaveLength(1);
  });

  test("with any contents, a connection always has a matching pair, the newest that was complete", () => {
    const part = fc.constantFrom("certificate", "key", "authority", "revoked" as const);
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          put: fc.constantFrom(...sound.slice(0, 3), ...Object.values(unsound)),
          parts: fc.subarray(["certificate", "key", "authority"] as const, { minLength: 1 }),
        }),
      },
      { weight: 2, arbitrary: fc.record({ list: fc.constantFrom(1, 2, 3 as const) }) },
      { weight: 1, arbitrary: fc.constant("foreign list" as const) },
      { weight: 2, arbitrary: fc.record({ cut: part, share: fc.double({ min: 0, max: 0.99, noNaN: true }) }) },
      { weight: 1, arbitrary: fc.record({ remove: part }) },
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) => {
        const { identity } = openAt(sound[0]!);
        let expected = sound[0]!;
        let number = 0;
        for (const one of steps) {
          if (one === "foreign list") write({ revoked: foreignList });
          else if ("put" in one) write(Object.fromEntries(one.parts.map((name) => [name, one.put[name]])));
          else if ("list" in one) write({ revoked: lists[one.list] });
          else if ("remove" in one) rmSync(files[one.remove], { force: true });
          else {
            try {
              const text = readFileSync(files[one.cut], "utf8");
              writeFileSync(files[one.cut], text.slice(0, Math.floor(text.length * one.share)));
            } catch {
              // The file is missing.
            }
          }
          const text = (name: keyof TlsFiles): string | undefined => {
            try {
              return readFileSync(files[name], "utf8");
            } catch {
              return undefined;
            }
          };
          const onDisk = ([1, 2, 3] as const).find((n) => lists[n] === text("revoked"));
          if (onDisk !== undefined && onDisk > number) number = onDisk;
          // Determined from the written files, independently of their validation.
          const whole = sound.find(
            ({ certificate, key }) => certificate === text("certificate") && key === text("key"),
          );
          if (whole !== undefined && text("authority") === whole.authority) expected = whole;
          const { certificate, key, authority: ca, revoked } = connect(identity);
          expect({ certificate, key }).toEqual({ certificate: expected.certificate, key: expected.key });
          expect(ca).toBe(sound[0]!.authority);
          expect(revoked).toBe(number === 0 ? undefined : lists[number as 1 | 2 | 3]);
        }
        write({ ...sound[1]!, revoked: lists[3] });
        expect(connect(identity)).toMatchObject({ ...sound[1]!, revoked: lists[3] });
        clear();
      }),
      { numRuns: 40 },
    );
  });

  test("at start-up, are read again while key and certificate do not match", () => {
    write({ ...sound[0]!, key: sound[1]!.key });
    expect(() => readTlsIdentity(files)).toThrow(/is not the key of certificate/); // After one second.
    write(sound[1]!);
    expect(readTlsIdentity(files)).toMatchObject(sound[1]!);
  });
});

test("an identity without files never changes", () => {
  const identity = new RenewableIdentity(sound[0]!);
  opened.push(identity);
  expect(connect(identity)).toBe(sound[0]!);
  expect(vi.getTimerCount()).toBe(0);
});
