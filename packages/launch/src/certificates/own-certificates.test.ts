import { X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { issueIdentities } from "./certificate-folder.ts";

test("certificates that a run creates are valid at any time of the clock", async () => {
  const { coordinator, ranks } = await issueIdentities({ ranks: 2, hosts: ["127.0.0.1"], days: Infinity });
  for (const { certificate, authority } of [coordinator, ...ranks])
    for (const pem of [certificate, authority]) {
      const { validFromDate, validToDate } = new X509Certificate(pem);
      expect([validFromDate.getTime(), validToDate.toISOString()]).toEqual([0, "9999-12-31T23:59:59.000Z"]);
    }
});
