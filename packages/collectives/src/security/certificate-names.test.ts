import { expect, test } from "vitest";
import { identityOf, provesWhat } from "./certificate-names.ts";

test.each<[string | undefined, ReturnType<typeof identityOf>]>([
  [undefined, { coordinator: false, ranks: [], namesHosts: false }],
  ["DNS:node-1, IP Address:10.0.0.1", { coordinator: false, ranks: [], namesHosts: true }],
  ["URI:skein:rank:3", { coordinator: false, ranks: [3], namesHosts: false }],
  [
    "URI:skein:rank:0, URI:skein:rank:12, URI:skein:coordinator, DNS:a",
    { coordinator: true, ranks: [0, 12], namesHosts: true },
  ],
  ["IP Address:127.0.0.1, URI:skein:rank:1", { coordinator: false, ranks: [1], namesHosts: true }],
  // Almost valid names: leading zeros, a longer path, another scheme, a name that Node quotes because it contains a
  // comma.
  [
    "URI:skein:rank:03, URI:skein:rank:3/x, URI:xskein:rank:4, URI:skein:rank:-1",
    { coordinator: false, ranks: [], namesHosts: false },
  ],
  ['URI:"http://x/\\u002c URI:skein:rank:5"', { coordinator: false, ranks: [], namesHosts: false }],
  ["DNS:skein:coordinator, URI:skein:coordinators", { coordinator: false, ranks: [], namesHosts: true }],
])("%s", (names, identity) => {
  expect(identityOf(names)).toEqual(identity);
});

test("describes identities for messages", () => {
  expect(provesWhat({ coordinator: true, ranks: [1, 0] })).toBe("to be the coordinator and ranks 0, 1");
  expect(provesWhat({ coordinator: false, ranks: [] })).toBe("nothing");
});
