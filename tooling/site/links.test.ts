import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { brokenLinks } from "./links.ts";

test("checks the file and the anchor of each link", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-site-"));
  try {
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    write("index.html", `<a href="guides/a,b.html#top">a</a><img class="x" src="plot.svg"><a href="#none">b</a>`);
    write("guides/a,b.html", `<h1 id="top">a</h1><a class="y" href="../index.html">up</a><a href="../plot.svg">c</a>`);
    write(
      "guides/c.html",
      `<a href="a%2Cb.html#bottom">d</a><a href="https://">e</a><a href="https://skein.dev/x">f</a>`,
    );
    expect(brokenLinks(folder)).toEqual([
      "guides/a,b.html: ../plot.svg",
      "guides/c.html: a%2Cb.html#bottom",
      "guides/c.html: https://",
      "index.html: #none",
      "index.html: plot.svg",
    ]);
    write("plot.svg", "<svg></svg>");
    expect(brokenLinks(folder)).toHaveLength(3);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
