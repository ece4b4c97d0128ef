import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { quickReader } from "./quick-reader.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-quick-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "file");

// values of `slowAfter`: no read is slow, each read is slow, default
const readers = [Infinity, -1, undefined].map((slowAfter) => quickReader(slowAfter));

test("files and parts are equal for every reader", async () => {
  const some = fc.record({ bytes: fc.uint8Array({ maxLength: 300 }), begin: fc.nat(300), sizeBytes: fc.nat(300) });
  await fc.assert(
    fc.asyncProperty(some, async ({ bytes, begin, sizeBytes }) => {
      writeFileSync(path, bytes);
      for (const read of readers) {
        expect(Uint8Array.from(await read(path))).toEqual(bytes);
        const part = read(path, { begin, sizeBytes });
        if (begin + sizeBytes <= bytes.length || sizeBytes === 0)
          expect(Uint8Array.from(await part)).toEqual(bytes.subarray(begin, begin + sizeBytes));
        else await expect(part).rejects.toThrow(`it ends after ${Math.max(begin, bytes.length)} bytes`);
      }
    }),
    { numRuns: 60 },
  );
});

test("a missing file is reported with the system's error code", async () => {
  for (const read of readers)
    for (const part of [undefined, { begin: 0, sizeBytes: 1 }])
      await expect(read(join(folder, "none"), part)).rejects.toMatchObject({ code: "ENOENT" });
});
