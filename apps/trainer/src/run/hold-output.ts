import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { RunError } from "../errors.ts";
import { isRunning, statusOf } from "./process-status.ts";

/** In an output folder while a process writes there. */
export const holderFile = ".held-by.json";

const holderSchema = z.object({
  host: z.string(),
  pid: z.int().min(1),
  /** When that process began, as its system counts it; a later process may have the same number. */
  began: z.string().optional(),
  since: z.string(),
  id: z.string(),
});

type Holder = z.infer<typeof holderSchema>;

/** A process that is killed needs a moment to be gone, and whoever killed it goes on at once. */
const patienceMilliseconds = 1000;
const betweenLooksMilliseconds = 50;

/** What is held by this process itself, whose number tells nothing then. */
const heldHere = new Set<string>();

/**
 * Whether a holder still writes. Of other machines nobody can tell: a cluster that starts a job again does so
 * elsewhere, and must not be refused for what a killed process has left.
 */
const isAlive = ({ host, pid, began, id }: Holder): boolean => {
  if (host !== hostname()) return false;
  if (pid === process.pid) return heldHere.has(id);
  const status = statusOf(pid);
  return isRunning(pid, status) && (began === undefined || began === status.began);
};

const readHolder = (path: string): Holder | undefined => {
  try {
    return holderSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined; // gone meanwhile, or torn with the power
  }
};

/** Take a file away that a process has left which is no more, unless another one was faster. */
const removeLeft = (path: string, left: Holder | undefined): void => {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
    if (readHolder(aside)?.id !== left?.id) linkSync(aside, path); // of one that has come since
  } catch {
    // another process has done it
  }
  rmSync(aside, { force: true });
};

/**
 * Hold a folder for this process: two that write metrics and checkpoints to one folder take each other's files away.
 *
 * What a killed process has left is passed over. A folder that cannot be written to is not held: whoever is to write
 * there says so.
 *
 * @param what writes there: a run, a sweep.
 * @returns what lets it go.
 * @throws RunError where another process of this machine, or this one, holds it.
 */
export const holdOutput = (output: string, what: string): (() => void) => {
  const path = resolve(join(output, holderFile));
  const own: Holder = {
    host: hostname(),
    pid: process.pid,
    began: statusOf(process.pid).began,
    since: new Date().toISOString(),
    id: randomUUID(),
  };
  const askedAt = performance.now();
  for (;;) {
    try {
      writeFileSync(path, `${JSON.stringify(own)}\n`, { flag: "wx" });
      break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOSPC" || code === "EDQUOT") rmSync(path, { force: true }); // made, and empty
      if (code !== "EEXIST") return () => undefined;
    }
    const holder = readHolder(path);
    const isHeld = holder !== undefined && isAlive(holder);
    // What says nothing may be about to be written.
    const mayPass = holder === undefined || (isHeld && holder.pid !== process.pid);
    if (mayPass && performance.now() - askedAt < patienceMilliseconds) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, betweenLooksMilliseconds);
      continue;
    }
    if (isHeld)
      throw new RunError(
        "output-in-use",
        `${output}: ${what} is under way there (process ${holder.pid}${holder.pid === process.pid ? ", this one" : ""}, since ${holder.since}), and another would write to the same files; let it end, stop it, or name another folder`,
      );
    removeLeft(path, holder);
  }
  heldHere.add(own.id);
  return () => {
    heldHere.delete(own.id);
    if (readHolder(path)?.id === own.id) rmSync(path, { force: true });
  };
};
