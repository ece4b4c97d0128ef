import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The IPv4 TCP ports on which a process listens, by Linux's tables. */
export const listeningPorts = (pid: number): number[] => {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return []; // closed in the meantime
      }
    }),
  );
  // Columns: number, local address, remote address, state (0A listens), queues, timer, retries, user, time-out, inode.
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === "0A" && inodes.has(inode!))
    .map(([, local]) => Number.parseInt(local!.split(":")[1]!, 16));
};
