import type { LinkFile, LinkFit } from "@skein/collectives";
import { type HardwareFile, hardwareNamed } from "@skein/cost-model/hardware";
import { formatHardwareFile, parseHardwareFile } from "@skein/cost-model/files";
import { expect, test } from "vitest";
import { linkLines } from "./link-lines.ts";
import { withLinks } from "./with-links.ts";

const fit = (secondsPerMessage: number, secondsPerByte: number): LinkFit => ({
  secondsPerMessage,
  secondsPerByte,
  r2: 1,
  worstRelativeError: 0.12,
});

const links = (more: Partial<LinkFile>): LinkFile => ({
  format: "skein-links",
  version: 1,
  measuredAt: "2026-11-23T09:30:00.000Z",
  machine: "desk",
  transport: "tcp",
  messageBytes: [64, 2 ** 22],
  hosts: [[0, 1]],
  pairs: [{ from: 0, to: 1, ...fit(1e-4, 1e-9) }],
  reduceSecondsPerByte: 5e-11,
  ...more,
});

test("a table of 80 columns shows the time of messages of 1 KiB and 1 MiB, by α + β · b", () => {
  const lines = linkLines(links({ within: fit(1e-4, 1e-9) }), 80);
  expect(lines.find((line) => line.startsWith("within a host"))).toMatch(
    /^within a host +100 µs +1\.00 ns\/B +1\.00 GB\/s +101 µs +1\.15 ms +12\.0 %$/,
  );
  expect(lines.join("\n")).not.toContain("0 to 1"); // the class contains only this pair
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("of many pairs the slowest are shown with the number of hidden ones; links whose bytes cost nothing have no rate", () => {
  const pairs = Array.from({ length: 66 }, (_, i) => ({ from: 0, to: i + 1, ...fit(1e-4, i * 1e-9) }));
  const lines = linkLines(links({ across: fit(1e-4, 0), pairs, hosts: pairs.map((_, i) => [i]) }), 80);
  expect(lines.filter((line) => line.startsWith("  0 to")).map((line) => line.trim().split(/ {2,}/)[0])).toEqual(
    Array.from({ length: 10 }, (_, i) => `0 to ${66 - i}`),
  );
  expect(lines).toContain("56 faster pairs are not shown");
  expect(lines.find((line) => line.startsWith("across hosts"))).toMatch(/ 0\.00 ns\/B +– +100 µs +100 µs/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("replaces measured links of a hardware file, keeps the others, and the result is a valid hardware file", () => {
  const before: HardwareFile = hardwareNamed("laptop-cpu");
  const measured = withLinks(before, links({ within: fit(1e-4, 1e-9) }));
  expect(measured.unmeasured).toBe("across");
  expect(measured.hardware).toEqual({
    ...before,
    links: {
      ...before.links,
      within: { secondsPerMessage: 1e-4, secondsPerByte: 1e-9 },
      reduceSecondsPerByte: 5e-11,
      source: expect.stringMatching(
        /^measured by skein-profile links on 2026-11-23, on desk over tcp; those across hosts as before \(.+\)$/,
      ) as string,
    },
  });
  const { hardware, unmeasured } = withLinks(before, links({ within: fit(1e-4, 1e-9), across: fit(2e-4, 2e-9) }));
  expect([unmeasured, hardware.links.across]).toEqual([undefined, { secondsPerMessage: 2e-4, secondsPerByte: 2e-9 }]);
  const growth = { numHosts: 2, sharePerDoubling: 0.1 };
  const growing = { ...before, links: { ...before.links, growth } };
  expect(withLinks(growing, links({ within: fit(1e-4, 1e-9) })).hardware.links.growth).toEqual(growth);
  expect(withLinks(growing, links({ across: fit(1e-4, 1e-9) })).hardware.links.growth).toBeUndefined();
  for (const file of [measured.hardware, hardware])
    expect(parseHardwareFile(formatHardwareFile(file), "desk.json")).toEqual(file);
});
