import { cpus, totalmem } from "node:os";

/** This machine, in words. */
export const machineInWords = (): string => {
  const cores = cpus();
  return `${cores[0]?.model.trim() ?? "unknown processor"}, ${cores.length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}, Node ${process.version}`;
};
