import { expect, test } from "vitest";
import { InsecureError } from "./errors.ts";
import { isLoopback, requireSecure } from "./loopback.ts";

test.each(["127.0.0.1", "127.8.9.10", "localhost", "::1", "::ffff:127.0.0.1"])(
  "%s cannot be reached from other machines",
  (host) => {
    expect(isLoopback(host)).toBe(true);
    requireSecure("a listener", host, { encrypted: false, insecure: false });
  },
);

test.each([
  "0.0.0.0",
  "::",
  "10.0.0.1",
  "127.0.0.1.example",
  "localhost.example",
  "node-3",
  "1127.0.0.1",
  "::ffff:10.0.0.1",
])("%s can be reached from other machines", (host) => {
  expect(isLoopback(host)).toBe(false);
  expect(() => requireSecure("a listener", host, { encrypted: false, insecure: false })).toThrow(InsecureError);
  requireSecure("a listener", host, { encrypted: true, insecure: false });
  requireSecure("a listener", host, { encrypted: false, insecure: true });
});
