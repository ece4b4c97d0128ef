import { readRunFiles } from "../readers/run-files.ts";
import { changesFile } from "./provenance.ts";

type Facts = Readonly<Record<string, unknown>>;

const textOf = (facts: unknown, name: string): string | undefined => {
  const value = typeof facts === "object" && facts !== null ? (facts as Facts)[name] : undefined;
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
};

/** Returns the origin of a run as one line, from the files in its folder. Undefined: unknown. */
export const originOf = async (folder: string): Promise<string | undefined> => {
  const { provenance } = await readRunFiles(folder);
  if (provenance === undefined) return undefined;
  const { git, versions, machine } = provenance;
  const commit = textOf(git, "commit");
  const [skein, node] = [textOf(versions, "skein"), textOf(versions, "node")];
  const [processor, cores] = [textOf(machine, "processor"), textOf(machine, "cores")];
  return [
    textOf(provenance, "startedAt") && `started ${textOf(provenance, "startedAt")}`,
    commit &&
      `commit ${commit.slice(0, 12)}${textOf(git, "changes") === undefined ? "" : `, changed (${changesFile})`}`,
    skein && `Skein ${skein}`,
    node && `Node ${node}`,
    processor && `${processor}, ${cores ?? "?"} cores`,
  ]
    .filter((part) => part !== undefined && part !== "")
    .join("; ");
};
