import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { ThreadFileError, threadFile } from "./thread-file.ts";

const errorOf = (url: string, from?: string): ThreadFileError => {
  try {
    threadFile(() => new URL(url, from), "@skein/data", existsSync);
  } catch (error) {
    expect(error).toBeInstanceOf(ThreadFileError);
    expect(error).toMatchObject({ kind: "user", code: "thread-file" });
    if (error instanceof ThreadFileError) return error;
  }
  throw new Error("nothing was thrown");
};

test("returns a file that exists, and a URL that is not a file", () => {
  expect(threadFile(() => new URL("./thread-file.ts", import.meta.url), "@skein/data", existsSync).href).toMatch(
    /thread-file\.ts$/,
  );
  expect(threadFile(() => new URL("data:text/javascript,1"), "@skein/data", existsSync).protocol).toBe("data:");
});

test("names a file that a bundler has omitted, with the reason and both cures", () => {
  const error = errorOf("./a-worker.js", "file:///no/such place/server.js");
  expect(error.file).toBe("/no/such place/a-worker.js");
  expect(error.message).toBe(
    "/no/such place/a-worker.js, which @skein/data starts a thread from, is not there: this program was bundled, and bundlers leave such files behind; " +
      "keep the package out of the bundle (esbuild: --external:@skein/data; Vite: ssr.external), or bundle @skein/data/dist/a-worker.js too, as a program of its own, to that place",
  );
});

test("distinguishes a damaged package, and a bundle without import.meta.url", () => {
  expect(errorOf("file:///no/node_modules/@skein/data/dist/a-worker.js").message).toMatch(
    /the package is damaged; install it again$/,
  );
  expect(errorOf("./a-worker.js").message).toMatch(
    /without import\.meta\.url; bundle it as an ES module, and keep the package out/,
  );
});
