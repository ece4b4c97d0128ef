import { expect, test } from "vitest";
import { hardwareNamed } from "./shipped/index.ts";
import { linksOfGroup } from "./links-of-group.ts";

const { links } = hardwareNamed("hkbu-2080ti-10gbe");
const betweenRacks = { secondsPerMessage: 1e-3, secondsPerByte: 1e-8 };
const topology = { ranks: 16, ranksPerHost: 2, hostsPerRack: 2 };

test("a group in one rack has the links of the file; a group across racks has the links between racks instead of those between hosts", () => {
  const racks = { topology, links: { ...links, betweenRacks } };
  expect(linksOfGroup([0, 1, 2, 3], racks).across).toEqual(links.across);
  expect(linksOfGroup([4, 7], racks).across).toEqual(links.across);
  expect(linksOfGroup([3, 4], racks)).toMatchObject({ across: betweenRacks, within: links.within });
  expect(linksOfGroup([0, 15], { topology: { ranks: 16, ranksPerHost: 2 }, links }).across).toEqual(links.across);
});

test("rejects racks without links between them", () => {
  expect(() => linksOfGroup([0, 15], { topology, links })).toThrow(
    "hostsPerRack is 2, but links.betweenRacks is missing",
  );
});

test("only seconds per byte between hosts, and between racks, grow with the hosts of a group", () => {
  const growing = { ...links, growth: { numHosts: 2, sharePerDoubling: 0.5 } };
  const hosts = { ranks: 64, ranksPerHost: 4 };
  const byRanks = (numRanks: number) => linksOfGroup([...Array(numRanks).keys()], { topology: hosts, links: growing });
  for (const [numRanks, factor] of [
    [4, 1],
    [8, 1],
    [16, 1.5],
    [64, 2.5],
  ] as const) {
    expect(byRanks(numRanks).across.secondsPerByte).toBeCloseTo(factor * links.across.secondsPerByte, 20);
    expect(byRanks(numRanks)).toMatchObject({
      within: links.within,
      across: { secondsPerMessage: links.across.secondsPerMessage },
    });
  }
  const racks = linksOfGroup([0, 4, 8, 12], { topology, links: { ...growing, betweenRacks } });
  expect(racks.across.secondsPerMessage).toBe(1e-3);
  expect(racks.across.secondsPerByte).toBeCloseTo(1.5e-8, 20);
});
