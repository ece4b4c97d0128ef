import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * The system in which process ids mean the same: boot and namespace of process ids on Linux, where containers have
 * namespaces of their own under one host name; elsewhere the host name. Absent if the system does not say, as where
 * /proc is that of another namespace.
 */
export const processPlace = (): string | undefined => {
  if (process.platform !== "linux") return hostname();
  try {
    if (readlinkSync("/proc/self") !== String(process.pid)) return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
};
