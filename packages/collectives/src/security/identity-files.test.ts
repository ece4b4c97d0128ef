import { expect, test } from "vitest";
import { otherReaders } from "./identity-files.ts";

test.each<[string, number, number, string | undefined]>([
  ["readable by this user only", 1000, 0o100600, undefined],
  ["this user's and read-only", 1000, 0o100400, undefined],
  ["this user's and readable by a group", 1000, 0o100640, "others, as its mode is 0640"],
  ["this user's and readable by everyone", 1000, 0o100604, "others, as its mode is 0604"],
  ["root's and readable by a group, as Kubernetes mounts a Secret", 0, 0o100440, undefined],
  ["root's and writable by a group", 0, 0o100660, "others, as its mode is 0660"],
  ["root's and readable by everyone", 0, 0o100644, "others, as its mode is 0644"],
  ["another user's", 1001, 0o100600, "user 1001, the owner of the file"],
])("a key file that is %s", (_, uid, mode, others) => {
  expect(otherReaders({ uid, mode }, 1000)).toBe(others);
});
