import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkpointNames, jobFolder, start, until } from "./cli.ts";
import { expectTold } from "./run-ends.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const other = { host: "elsewhere", pid: 1, place: "another boot", since: "2026-01-01T00:00:00.000Z", id: "other" };

test.each(["threads", "tcp"])(
  "a run over %s whose output folder was taken over by another process ends, and removes nothing there",
  { tags: "full" },
  async (transport) => {
    const args = ["--transport", transport, "--steps", "1000000", "--output", "run"];
    const running = start(folder, "run", "job.yaml", ...args);
    await until(running, () => checkpointNames(join(folder, "run")).includes("step-00000010"));
    const holder = join(folder, "run", ".held-by.json");
    writeFileSync(holder, JSON.stringify(other));
    const unfinished = join(folder, "run", "checkpoints", ".writing-step-99999999");
    writeFileSync(unfinished, "of the other process");
    const ended = await running.ended;
    expectTold(ended, "run: process 1 of host elsewhere, since 2026-01-01T00:00:00.000Z has taken the folder", 1);
    expect(JSON.parse(readFileSync(holder, "utf8"))).toEqual(other);
    expect(readdirSync(join(folder, "run", "checkpoints"))).toContain(".writing-step-99999999");
  },
);
