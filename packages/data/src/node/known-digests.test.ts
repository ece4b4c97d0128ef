import { execFile } from "node:child_process";
import { hash, randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { KnownDigests } from "./known-digests.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-known-"))));
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

const digestOf = (text: string): Uint8Array => hash("sha256", `bytes of ${text}`, "buffer");

const isKnown = (known: KnownDigests, text: string): boolean => {
  const digest = known.find(text);
  if (digest !== undefined) expect(Uint8Array.from(digest)).toEqual(Uint8Array.from(digestOf(text)));
  return digest !== undefined;
};

describe("digests", () => {
  test("are found by later runs in the same location only; without room the most recently used are kept", () => {
    const uses = fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 20 }), { maxLength: 8 }), { maxLength: 6 });
    fc.assert(
      fc.property(uses, fc.integer({ min: 0, max: 12 }), (starts, room) => {
        rmSync(folder, { recursive: true, force: true });
        /** Keys of the records expected in the file, most recently used first. */
        let model: number[] = [];
        for (const used of starts) {
          const known = new KnownDigests(folder, "here", used.length, { records: room, folderBytes: 1e9 });
          const found = used.filter((number) => {
            if (isKnown(known, String(number))) return true;
            known.add(String(number), digestOf(String(number)));
            return false;
          });
          expect(found).toEqual(used.filter((number) => model.includes(number)));
          known.save();
          // the file is not written without new records
          if (found.length < used.length)
            model = [...used, ...model.filter((number) => !used.includes(number))].slice(
              0,
              Math.max(room, used.length),
            );
          expect(known.remark).toBe(undefined);
          expect(isKnown(new KnownDigests(folder, "elsewhere", 1), "0")).toBe(false);
        }
      }),
    );
  });

  test("exist after a run was killed shortly after it began to read", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const known = new KnownDigests(folder, "here", 100);
    for (let i = 0; i < 100; i++) {
      vi.advanceTimersByTime(1000);
      known.add(String(i), digestOf(String(i)));
    }
    const next = new KnownDigests(folder, "here", 100);
    expect(Array.from({ length: 100 }, (_, i) => isKnown(next, String(i))).filter(Boolean).length).toBeGreaterThan(90);
  });

  test("of locations that were not used for long are removed, and so are partly written files", () => {
    const keep = (place: string): void => {
      const known = new KnownDigests(folder, place, 10, { records: 10, folderBytes: 1500 });
      for (let i = 0; i < 10; i++) if (!isKnown(known, String(i))) known.add(String(i), digestOf(String(i)));
      known.save();
    };
    const knows = (place: string): boolean => new KnownDigests(folder, place, 10).find("0") !== undefined;
    const old = (seconds: number): void => {
      for (const name of readdirSync(folder)) {
        const { mtimeMs } = statSync(join(folder, name));
        utimesSync(join(folder, name), 0, mtimeMs / 1000 - seconds);
      }
    };
    for (const place of ["a", "b", "c"]) {
      keep(place);
      old(10);
    }
    keep("a"); // marks the records as used, although none is new
    old(10);
    const [killed, written] = [randomUUID(), randomUUID()].map((id) => `${"0".repeat(32)}.${id}.tmp`);
    const others = [killed!, written!, "somebody-elses", "somebody-elses.tmp"];
    for (const name of others) {
      writeFileSync(join(folder, name), new Uint8Array(name === written ? 0 : 5000));
      if (name !== written) utimesSync(join(folder, name), 0, 0);
    }
    keep("d");
    expect(["a", "b", "c", "d"].map(knows)).toEqual([true, false, true, true]);
    expect(others.map((name) => existsSync(join(folder, name)))).toEqual([false, true, true, true]);
  });

  test("can be stored by several processes at once", async () => {
    const url = new URL("known-digests.ts", import.meta.url).href;
    const program = `
      import { hash, randomUUID } from "node:crypto";
      const { KnownDigests } = await import(${JSON.stringify(url)});
      const [folder, of] = process.argv.slice(1);
      const wrong = [];
      for (let turn = 0; turn < 40; turn++) {
        const known = new KnownDigests(folder, "here", 200);
        for (let i = 0; i < 50; i++)
          for (const text of ["shared " + i, of + " " + turn + " " + i]) {
            const digest = hash("sha256", "bytes of " + text, "buffer");
            const found = known.find(text);
            if (found === undefined) known.add(text, digest);
            else if (digest.compare(found) !== 0) wrong.push(text);
          }
        known.save();
        if (known.remark !== undefined) wrong.push(known.remark);
      }
      console.log(JSON.stringify(wrong));`;
    const run = promisify(execFile);
    const ends = await Promise.all(
      ["a", "b", "c", "d"].map((of) => run(process.execPath, ["--input-type=module", "-e", program, "--", folder, of])),
    );
    expect(ends.map(({ stdout }) => JSON.parse(stdout) as unknown)).toEqual([[], [], [], []]);
    const known = new KnownDigests(folder, "here", 8000);
    expect(Array.from({ length: 50 }, (_, i) => isKnown(known, `shared ${i}`))).not.toContain(false);
    // If another process writes records between the read and the write of a process, these records are lost, and their
    // images are read again. The number of lost records depends on the machine.
    expect(readdirSync(folder)).toHaveLength(1);
  });
});
