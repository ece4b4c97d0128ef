import { expect, test } from "vitest";
import { hardwareNamed } from "./shipped/index.ts";
import { linksOfGroup } from "./links-of-group.ts";

const { links } = hardwareNamed("hkbu-2080ti-10gbe");
const betweenRacks = { secondsPerMessage: 1e-3, secondsPerByte: 1e-8 };
const topology = { ranks: 16, ranksPerHost: 2, hostsPerRack: 2 };

test("a group in one rack has the links of the file, one across racks those between racks in place of those across hosts", () => {
  const racks = { topology, links: { ...links, betweenRacks } };
  expect(linksOfGroup([0, 1, 2, 3], racks).across).toEqual(links.across);
  expect(linksOfGroup([4, 7], racks).across).toEqual(links.across);
  expect(linksOfGroup([3, 4], racks)).toMatchObject({ across: betweenRacks, within: links.within });
  expect(linksOfGroup([0, 15], { topology: { ranks: 16, ranksPerHost: 2 }, links }).across).toEqual(links.across);
});

test("racks without links between them are refused", () => {
  expect(() => linksOfGroup([0, 15], { topology, links })).toThrow(
    "hosts lie in racks of 2, but links.betweenRacks is not given",
  );
});
