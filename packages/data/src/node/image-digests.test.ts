import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ImageFile } from "./find-images.ts";
import { type ImageDigests, imageDigests } from "./image-digests.ts";
import { imageSource, readImage } from "./image-source.ts";

let root: string;
let images: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "skein-digests-"));
  images = join(root, "images");
  folder = join(root, "cache", "digests");
  mkdirSync(images);
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(root, { recursive: true });
});

/**
 * Waits 12 ms, so that files written from now on have a later timestamp, and advances `Date` by 10 s, so that earlier
 * files count as old.
 */
const later = async (): Promise<void> => {
  await wait(12);
  vi.useFakeTimers({ toFake: ["Date"], now: vi.getRealSystemTime() + 10_000 });
};

const write = (name: string, content: string): void => writeFileSync(join(images, name), content);

const filesOf = (names: readonly string[] = readdirSync(images).sort()): ImageFile[] =>
  names.map((name, i) => ({ path: join(images, name), label: i % 2 }));

interface Digested extends ImageDigests {
  /** Paths of the images that were read, relative to `images`. */
  readonly read: readonly string[];
  readonly unread: readonly number[];
}

/** @param kept Folder of digests. Undefined: all images are read. */
const digestWith = async (files: readonly ImageFile[], kept: string | undefined): Promise<Digested> => {
  const [read, unread]: [string[], number[]] = [[], []];
  const found = await imageDigests(
    [imageSource(files, undefined)],
    {
      concurrency: 3,
      folder: kept,
      read: async (source, index) => {
        const { path, entry } = files[index]!;
        read.push(path.slice(images.length + 1) + (entry === undefined ? "" : `/${entry.name}`));
        return readImage(source, index);
      },
    },
    (_, index) => unread.push(index),
  );
  return { ...found, read: read.sort(), unread: unread.sort() };
};

const digest = (files: readonly ImageFile[] = filesOf()): Promise<Digested> => digestWith(files, folder);

const digestAnew = async (files: readonly ImageFile[] = filesOf()): Promise<readonly Uint8Array[]> => {
  const { digests, read } = await digestWith(files, undefined);
  expect(read).toHaveLength(files.length);
  return digests;
};

describe("cached digests of images", () => {
  test("avoid reading unchanged images, and equal digests of all bytes", async () => {
    for (const name of ["a", "b", "c", "d"]) write(name, `image ${name}`);
    await later();
    const first = await digest();
    expect([first.read, first.remarks]).toEqual([["a", "b", "c", "d"], []]);
    const second = await digest();
    expect(second).toMatchObject({
      read: [],
      remarks: [
        "4 of 4 images are unchanged since their digests were computed, and are not read again for the digest of the data",
      ],
    });
    expect(second.digests).toEqual(await digestAnew());

    write("b", "IMAGE B");
    utimesSync(join(images, "c"), 1e9, 1e9); // only the modification time changes
    write("e", "image e");
    rmSync(join(images, "a"));
    await later();
    const third = await digest();
    expect(third.read).toEqual(["b", "c", "e"]);
    expect(third.digests).toEqual(await digestAnew());
    expect(third.digests[0]!.subarray(32, 64)).toEqual(first.digests[0]!.subarray(64, 96)); // digest of c
    expect((await digest()).read).toEqual([]);
  });

  test("do not include files written just now, which may change again within a tick of the clock", async () => {
    vi.useFakeTimers({ toFake: ["Date"] }); // fixed time, so that files are recent even on a slow machine
    for (let i = 0; i < 50; i++) {
      write("a", `a${i % 10}`);
      await digest();
      write("a", `b${i % 10}`);
      expect((await digest()).digests).toEqual(await digestAnew());
    }
    expect(existsSync(folder)).toBe(false); // there was no digest to store
  });

  test("do not include files with a future time: the clock was set back", async () => {
    write("a", "one");
    utimesSync(join(images, "a"), new Date(), new Date(Date.now() + 3600_000));
    await later();
    await digest();
    expect((await digest()).read).toEqual(["a"]);
  });

  test("are not used for another file of equal size and time at the same path", async () => {
    const old = new Date(2020, 1, 1);
    for (const [name, content] of [
      ["a", "one"],
      ["b", "two"],
      ["c", "six"],
    ] as const) {
      write(name, content);
      utimesSync(join(images, name), old, old);
    }
    symlinkSync("a", join(images, "link"));
    await later();
    const names = ["a", "c", "link"];
    expect((await digest(filesOf(names))).read).toEqual(names);
    await later();
    renameSync(join(images, "b"), join(images, "a"));
    writeFileSync(join(images, "c"), "SIX");
    utimesSync(join(images, "c"), old, old);
    rmSync(join(images, "link"));
    symlinkSync("c", join(images, "link"));
    await later();
    expect(statSync(join(images, "c")).mtimeMs).toBe(old.getTime());
    const { read, digests } = await digest(filesOf(names));
    expect([read, digests]).toEqual([names, await digestAnew(filesOf(names))]);
  });

  test("are found through links, and computed again after the folder was moved", async () => {
    for (const name of ["a", "b"]) write(name, name);
    await later();
    const { digests } = await digest();
    symlinkSync(images, join(root, "alias"));
    const aliases = ["a", "b"].map((name, label) => ({ path: join(root, "alias", name), label }));
    expect(await digest(aliases)).toMatchObject({ read: [], digests });
    renameSync(images, join(root, "moved"));
    const moved = ["a", "b"].map((name, label) => ({ path: join(root, "moved", name), label }));
    expect((await digest(moved)).read).toHaveLength(2);
    mkdirSync(images); // other files with the same names
    for (const name of ["b", "a"]) write(name, `${name}${name}`.slice(1));
    await later();
    expect((await digest()).digests).toEqual(await digestAnew());
  });

  test("do not hide that an image is missing or no longer readable", async () => {
    const names = ["dangling", "gone", "folder", "sound"];
    for (const name of names) write(name, name);
    await later();
    expect((await digest(filesOf(names))).unread).toEqual([]);
    for (const name of names.slice(0, 3)) rmSync(join(images, name));
    symlinkSync("nowhere", join(images, "dangling"));
    mkdirSync(join(images, "folder"));
    const found = await digest(filesOf(names));
    expect([found.unread, found.read]).toEqual([[0, 1, 2], names.slice(0, 3).sort()]);
    expect(found.digests[0]!.subarray(0, 96)).toEqual(new Uint8Array(96));
    await expect(imageDigests([imageSource(filesOf(names), undefined)], { concurrency: 4, folder })).rejects.toThrow(
      `${join(images, "dangling")} cannot be read (ENOENT); check that the file exists and is readable`,
    );
  });

  test("of a run that fails at an unreadable image are kept for the next run", async () => {
    for (const name of ["a", "b", "d"]) write(name, name);
    await later();
    const files = filesOf(["a", "b", "c", "d"]);
    await expect(imageDigests([imageSource(files, undefined)], { concurrency: 1, folder })).rejects.toThrow(/ENOENT/);
    expect((await digest(files)).read).toEqual(["c", "d"]);
  });

  test("cover entries of shards as long as the shards are unchanged", async () => {
    write("shard", "onetwosix");
    write("other", "redblue");
    const part = (name: string, shard: string, begin: number, sizeBytes: number): ImageFile => ({
      path: join(images, shard),
      label: 0,
      entry: { name, begin, sizeBytes },
    });
    const parts = [part("one", "shard", 0, 3), part("two", "shard", 3, 3), part("red", "other", 0, 3)];
    await later();
    expect((await digest(parts)).read).toEqual(["other/red", "shard/one", "shard/two"]);
    const more = [...parts, part("onet", "shard", 0, 4), part("six", "shard", 6, 3)];
    expect((await digest(more)).read).toEqual(["shard/onet", "shard/six"]);
    appendFileSync(join(images, "other"), "!");
    await later();
    const { read, digests } = await digest(more);
    expect([read, digests]).toEqual([["other/red"], await digestAnew(more)]);
  });

  test("cover shards on web servers only if the strong ETag is equal", async () => {
    let tag = '"1"';
    let content = "onetwo";
    const server = createServer((request, response) => {
      const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")!;
      response
        .writeHead(206, { "content-range": `bytes ${begin}-${end}/${content.length}`, etag: tag })
        .end(content.slice(Number(begin), Number(end) + 1));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const path = `http://127.0.0.1:${(server.address() as AddressInfo).port}/shard.tar`;
    const files = ["one", "two"].map((name, i) => ({ path, label: 0, entry: { name, begin: 3 * i, sizeBytes: 3 } }));
    expect((await digest(files)).read).toHaveLength(2);
    expect((await digest(files)).read).toHaveLength(0);
    [tag, content] = ['"2"', "redtwo"];
    const { read, digests } = await digest(files);
    expect([read.length, digests]).toEqual([2, await digestAnew(files)]);
    tag = 'W/"3"';
    for (let i = 0; i < 2; i++) expect((await digest(files)).read).toHaveLength(2);
    server.close();
  });

  test("of images in memory are always computed", async () => {
    const bytes = new TextEncoder().encode("one");
    const files = [{ path: "/nowhere", label: 0, bytes, entry: { name: "row 0", begin: 0, sizeBytes: 3 } }];
    for (let i = 0; i < 2; i++) expect((await digest(files)).read).toHaveLength(1);
    expect(existsSync(folder)).toBe(false);
  });

  const names = ["a", "b", "c"];
  const name = fc.constantFrom(...names);
  const edit = fc.oneof(
    fc.record({
      does: fc.constantFrom("write" as const, "overwrite" as const),
      name,
      content: fc.constantFrom("one", "two", "three"),
    }),
    fc.record({ does: fc.constantFrom("remove" as const, "folder" as const), name }),
    fc.record({ does: fc.constant("touch" as const), name, seconds: fc.constantFrom(0, 1e9, 2e9, 4e9) }),
    fc.record({
      does: fc.constantFrom("move" as const, "symlink" as const, "link" as const, "swap" as const),
      name,
      to: name,
    }),
  );
  type Edit = typeof edit extends fc.Arbitrary<infer Of> ? Of : never;

  const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile(); // false for a link to itself

  /** Writes a file with a fixed timestamp, as archive programs do, so that timestamps do not reveal a change. */
  const writeAsPacked = (path: string, content: string): void => {
    writeFileSync(path, content);
    utimesSync(path, 1e9, 1e9);
  };

  const apply = (step: Edit): void => {
    const path = join(images, step.name);
    const remove = (place: string): void => rmSync(place, { recursive: true, force: true });
    switch (step.does) {
      case "write":
        remove(path);
        return writeAsPacked(path, step.content);
      case "overwrite":
        return isFile(path) ? writeAsPacked(path, step.content) : undefined;
      case "remove":
        return remove(path);
      case "folder":
        remove(path);
        return void mkdirSync(path);
      case "touch":
        return existsSync(path) ? utimesSync(path, step.seconds, step.seconds) : undefined;
      default:
    }
    const to = join(images, step.to);
    if (!existsSync(path) || to === path) return undefined;
    if (step.does === "swap" && existsSync(to)) renameSync(to, join(root, "aside"));
    remove(to);
    if (step.does === "symlink") return symlinkSync(step.name, to);
    if (step.does === "link" && isFile(path)) return linkSync(path, to);
    renameSync(path, to);
    return existsSync(join(root, "aside")) ? renameSync(join(root, "aside"), path) : undefined;
  };

  test("equal the digests of reading all files, after any changes to the folder", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(edit, { maxLength: 4 }), { maxLength: 6 }), async (starts) => {
        rmSync(root, { recursive: true });
        mkdirSync(images, { recursive: true });
        for (const edits of starts) {
          for (const step of edits) apply(step);
          await later();
          const [found, anew] = [await digest(filesOf(names)), await digestWith(filesOf(names), undefined)];
          expect([found.digests, found.unread]).toEqual([anew.digests, anew.unread]);
          await wait(12);
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe("a file of digests", () => {
  const only = (): string => join(folder, readdirSync(folder)[0]!);

  test("that is damaged anywhere is reported in one line and rewritten", async () => {
    for (const name of ["a", "b", "c"]) write(name, name);
    await later();
    const { digests } = await digest();
    const whole = readFileSync(only());
    const damage = fc.oneof(
      fc.record({ at: fc.nat(whole.length - 1), flip: fc.integer({ min: 1, max: 255 }) }),
      fc.record({ length: fc.nat(whole.length - 1) }),
      fc.record({ more: fc.uint8Array({ minLength: 1, maxLength: 100 }) }),
    );
    await fc.assert(
      fc.asyncProperty(damage, async (how) => {
        const bytes = Buffer.concat([whole, "more" in how ? how.more : new Uint8Array(0)]);
        if ("at" in how) bytes[how.at]! ^= how.flip;
        writeFileSync(only(), "length" in how ? bytes.subarray(0, how.length) : bytes);
        expect(await digest()).toMatchObject({
          digests,
          read: ["a", "b", "c"],
          remarks: [`${only()} is damaged, so images are read again and the file is rewritten`],
        });
        expect(readFileSync(only()).length).toBe(whole.length);
        expect(await digest()).toMatchObject({ digests, read: [] });
      }),
      { numRuns: 60 },
    );
  });

  test("that cannot be read or written causes one remark and no error", async () => {
    write("a", "a");
    await later();
    const { digests } = await digest();
    const path = only();
    rmSync(path);
    mkdirSync(path);
    const found = await digest();
    expect([found.digests, found.read, found.remarks]).toEqual([
      digests,
      ["a"],
      [expect.stringMatching(/^digests of images cannot be kept in \S+ \(EISDIR\), so the next run reads all images/)],
    ]);
    writeFileSync(join(root, "file"), "");
    const inFile = await digestWith(filesOf(), join(root, "file", "digests"));
    expect(inFile.digests).toEqual(digests);
    expect(inFile.remarks).toEqual([expect.stringMatching(/^digests of images cannot be kept in \S+ \(ENOTDIR\)/)]);
    expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
