import { expect, test } from "vitest";
import { bundlePage } from "./bundle-page.ts";

/** Bytes before compression, some above what there is: what makes them grow is to be looked at. */
const mostBytes = { "page.js": 130_000, "trace.js": 140_000, "page.css": 14_000 } as const;

test("the page stays small; what draws traces is a script of its own", async () => {
  const files = await bundlePage();
  expect([...files.keys()].toSorted()).toEqual(Object.keys(mostBytes).toSorted());
  for (const [name, most] of Object.entries(mostBytes))
    expect([name, files.get(name)!.length < most]).toEqual([name, true]);
});
