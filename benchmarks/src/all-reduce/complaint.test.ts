import { expect, test } from "vitest";
import { complaintOf } from "./complaint.ts";

test.each([
  [
    "/somewhere/a.ts:3\n    throw new WrongError('x')\n\nWrongError: two ranks differ\n    at file:///somewhere/a.ts:3",
    "WrongError: two ranks differ",
  ],
  ["Error [PeerLostError]: rank 1: rank 3 was lost\n    at x", "Error [PeerLostError]: rank 1: rank 3 was lost"],
  ['Traceback (most recent call last):\n  File "/a/b.py", line 3\nRuntimeError: no lo', "RuntimeError: no lo"],
  ["rank 0: element 3 of 9 is 1 instead of 2\nMPI_ABORT was invoked", "rank 0: element 3 of 9 is 1 instead of 2"],
  ["Error: cannot open file:///home/someone/x.node or /opt/y/z.so", "Error: cannot open x.node or z.so"],
])("the telling line of %j, without folders", (stderr, expected) => {
  expect(complaintOf({ stderr, code: 1 }, 1000)).toBe(expected);
});

test("a contestant that hung or died silently is told from others", () => {
  expect(complaintOf({ stderr: "Error: x", killed: true }, 300_000)).toBe("did not end within 300 s");
  expect(complaintOf({ stderr: "goodbye", code: 139 }, 1000)).toBe("ended with code 139 and said nothing of an error");
});
