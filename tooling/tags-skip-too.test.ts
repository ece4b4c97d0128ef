import { expect, test } from "vitest";

const full = process.env["SKEIN_TESTS"] === "full";

const ran: string[] = [];
test("tagged", { tags: "full" }, () => void ran.push("tagged"));
test.runIf(true)("tagged, run on a condition", { tags: "full" }, () => void ran.push("on a condition"));
test.skipIf(false)("tagged, skipped on a condition", { tags: "full" }, () => void ran.push("not on a condition"));
test.runIf(false)("left out on a condition", () => void ran.push("left out"));
test.skipIf(true).each([1])("left out %i times on a condition", () => void ran.push("left out"));

test("a true condition does not override tags", () => {
  expect(ran).toEqual(full ? ["tagged", "on a condition", "not on a condition"] : []);
});
