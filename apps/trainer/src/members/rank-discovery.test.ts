import { readFileSync } from "node:fs";
import { ConfigError } from "@skein/cli/node";
import { describe, expect, test } from "vitest";
import { discoverRank, parseAddress, rankSources } from "./rank-discovery.ts";

const fault = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
};

const faultOf = (env: Record<string, string>): string => fault(() => discoverRank(env));

test("a process without a launcher is not a rank", () => {
  expect(discoverRank({ PATH: "/bin", SKEIN_COORDINATOR: "a:1" })).toBeUndefined();
});

describe("rank, size and local rank come from", () => {
  test.each(rankSources)("$name", ({ name, rank, worldSize, localRank, requires }) => {
    for (const size of worldSize) {
      const env = {
        [rank]: "3",
        [size]: "8",
        ...(localRank && { [localRank]: "1" }),
        ...(requires && { [requires]: "0" }),
      };
      expect(discoverRank(env)).toEqual({ rank: 3, worldSize: 8, source: name, ...(localRank && { localRank: 1 }) });
    }
  });

  test("flags first", () => {
    expect(
      discoverRank({ OMPI_COMM_WORLD_RANK: "0", OMPI_COMM_WORLD_SIZE: "2" }, { rank: "5", worldSize: "6" }),
    ).toEqual({
      rank: 5,
      worldSize: 6,
      source: "flags",
    });
  });
});

test("an earlier row takes precedence over all later ones", () => {
  const subsets = 2 ** rankSources.length;
  for (let subset = 1; subset < subsets; subset++) {
    const rows = rankSources.map((row, i) => ({ row, i })).filter(({ i }) => (subset >> i) % 2 === 1);
    const env: Record<string, string> = {};
    // Rows can share a variable for the number of ranks, so the number is the same for all rows. The rank identifies
    // the row.
    for (const { row, i } of rows)
      Object.assign(env, { [row.rank]: String(i), [row.worldSize[0]!]: "9" }, row.requires && { [row.requires]: "0" });
    const [first] = rows;
    expect(discoverRank(env)).toMatchObject({ rank: first!.i, worldSize: 9, source: first!.row.name });
  }
});

test("a Slurm batch script outside srun is not a rank, although Slurm numbers it", () => {
  // The variables of the batch shell in a Slurm job with four tasks.
  expect(discoverRank({ SLURM_PROCID: "0", SLURM_NTASKS: "4", SLURM_LOCALID: "0", SLURM_JOB_ID: "1" })).toBeUndefined();
});

describe("one line names variable, value, rule and cure of", () => {
  test.each<[string, Record<string, string>, RegExp]>([
    ["text", { RANK: "two", WORLD_SIZE: "4" }, /^RANK=two: must be a whole number from 0; .*unset/],
    ["a negative rank", { RANK: "-1", WORLD_SIZE: "4" }, /^RANK=-1: must be a whole number/],
    ["an empty value", { RANK: "", WORLD_SIZE: "4" }, /^RANK=: must be a whole number/],
    ["a fraction", { PMI_RANK: "1.5", PMI_SIZE: "4" }, /^PMI_RANK=1\.5: must be/],
    ["a size beyond what counts exactly", { RANK: "0", WORLD_SIZE: "99999999999999999999" }, /^WORLD_SIZE=9+: must be/],
    [
      "a rank outside the world",
      { RANK: "4", WORLD_SIZE: "4" },
      /^RANK=4: must be below WORLD_SIZE=4, .*; start as many/,
    ],
    ["a world of none", { RANK: "0", WORLD_SIZE: "0" }, /^RANK=0: must be below WORLD_SIZE=0/],
    [
      "a local rank outside",
      { RANK: "0", WORLD_SIZE: "2", LOCAL_RANK: "2" },
      /^LOCAL_RANK=2: must be below WORLD_SIZE=2/,
    ],
    [
      "a rank without size",
      { JOB_COMPLETION_INDEX: "2" },
      /^JOB_COMPLETION_INDEX=2 is set without WORLD_SIZE; .*in the environment/,
    ],
    ["a PMIx rank without size", { PMIX_RANK: "2" }, /^PMIX_RANK=2 is set without SLURM_NTASKS or WORLD_SIZE/],
    ["a size without rank", { WORLD_SIZE: "2" }, /^WORLD_SIZE=2 is set without RANK; .*unset WORLD_SIZE/],
    [
      "half an address",
      { RANK: "0", WORLD_SIZE: "1", MASTER_ADDR: "a" },
      /^MASTER_ADDR=a is set without MASTER_PORT; .*SKEIN_COORDINATOR/,
    ],
    ["the other half", { RANK: "0", WORLD_SIZE: "1", MASTER_PORT: "1" }, /^MASTER_PORT=1 is set without MASTER_ADDR/],
    [
      "no address",
      { RANK: "0", WORLD_SIZE: "1", SKEIN_COORDINATOR: "node" },
      /^SKEIN_COORDINATOR=node: must be host:port/,
    ],
  ])("%s", (_, env, expected) => {
    const message = faultOf(env);
    expect(message).toMatch(expected);
    expect(message).not.toContain("\n");
  });

  test.each([
    [{ rank: "1" }, /^--rank 1 is given without --world-size/],
    [{ worldSize: "2" }, /^--world-size 2 is given without --rank/],
    [{ rank: "2", worldSize: "2" }, /^--rank=2: must be below --world-size=2/],
  ])("flags %j", (flags, expected) => {
    expect(fault(() => discoverRank({}, flags))).toMatch(expected);
  });
});

describe("the coordinator", () => {
  const rank = { RANK: "0", WORLD_SIZE: "1" };
  test("is SKEIN_COORDINATOR, otherwise MASTER_ADDR and MASTER_PORT", () => {
    const master = { MASTER_ADDR: "fd00::7", MASTER_PORT: "2" };
    expect(discoverRank({ ...rank, ...master, SKEIN_COORDINATOR: "a:1" })?.coordinator).toEqual({ host: "a", port: 1 });
    expect(discoverRank({ ...rank, ...master })?.coordinator).toEqual({ host: "fd00::7", port: 2 });
    expect(discoverRank(rank)).not.toHaveProperty("coordinator");
  });

  test.each(["", ":1", "a:", "a:0", "a:65536", "a:1x", "fd00::1:80", "[fd00::1]", "a b:x"])("is not %j", (text) => {
    expect(fault(() => parseAddress("X", text))).toContain(`X=${text}: must be host:port`);
  });

  test.each(["node-0", "node-0.run.namespace.svc", "10.0.0.1"])("is %s with a port", (host) => {
    expect(parseAddress("X", `${host}:65535`)).toEqual({ host, port: 65535 });
  });

  test.each(["::1", "fd00:1:2:3:4:5:6:7", "fe80::1%eth0"])("is %s in brackets with a port", (host) => {
    expect(parseAddress("X", `[${host}]:1`)).toEqual({ host, port: 1 });
  });
});

test("the documented table equals the table in the code", () => {
  const page = readFileSync(new URL("../../../../docs/launching.md", import.meta.url), "utf8");
  const rows = [
    ...page.matchAll(/^\| ([A-Z][^|`]*|the environment) \| `([A-Z_]+)` \|([^|]*)\|([^|]*)\|([^|]*)\|$/gm),
  ].map(([, name, rank, ...rest]) => {
    const [sizes, local, requires] = rest.map((cell) => [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, word]) => word!));
    return {
      name: name!.trim(),
      rank: rank!,
      worldSize: sizes!,
      ...(local![0] !== undefined && { localRank: local![0] }),
      ...(requires![0] !== undefined && { requires: requires![0] }),
    };
  });
  expect(rows).toEqual(rankSources);
});
