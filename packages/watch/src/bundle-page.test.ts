import { expect, test } from "vitest";
import { bundlePage } from "./bundle-page.ts";

/** Maximum sizes in bytes before compression, slightly above the current sizes, to detect growth. */
const maxBytes = { "page.js": 130_000, "trace.js": 140_000, "page.css": 14_000 } as const;

test("the page stays small; the code that draws traces is a separate script", async () => {
  const files = await bundlePage();
  expect([...files.keys()].toSorted()).toEqual(Object.keys(maxBytes).toSorted());
  for (const [name, most] of Object.entries(maxBytes))
    expect([name, files.get(name)!.length < most]).toEqual([name, true]);
});
