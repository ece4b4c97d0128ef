import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";
import { longest } from "./longest-first.ts";

test.each(longest)("%s exists", (file) => {
  expect(existsSync(join(repository, file))).toBe(true);
});
