import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Returns the IPv4 TCP ports on which a process listens, from the tables of Linux. */
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
  // Columns: number, local address, remote address, state (0A: listening), queues, timer, retries, user, timeout,
  // inode.
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === "0A" && inodes.has(inode!))
    .map(([, local]) => Number.parseInt(local!.split(":")[1]!, 16));
};
