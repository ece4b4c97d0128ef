import { expect, test } from "vitest";
import { othersWhoRead } from "./identity-files.ts";

test.each<[string, number, number, string | undefined]>([
  ["ours alone", 1000, 0o100600, undefined],
  ["ours, read only", 1000, 0o100400, undefined],
  ["ours, and a group's", 1000, 0o100640, "others, as its mode is 0640"],
  ["ours, and everyone's", 1000, 0o100604, "others, as its mode is 0604"],
  ["root's for our group, as Kubernetes mounts a Secret", 0, 0o100440, undefined],
  ["root's, written by a group", 0, 0o100660, "others, as its mode is 0660"],
  ["root's, and everyone's", 0, 0o100644, "others, as its mode is 0644"],
  ["another's", 1001, 0o100600, "user 1001, the owner of the file"],
])("a key file that is %s", (_, uid, mode, others) => {
  expect(othersWhoRead({ uid, mode }, 1000)).toBe(others);
});
