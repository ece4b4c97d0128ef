import type { GroupSituation } from "@skein/collectives";
import { type HardwareFile, hostsOfGroup } from "@skein/cost-model";
import type { ProfiledJob } from "skein-train/profiling";

/** What the groups of a job are on some hardware, by mesh axis. */
export const groupsOn = (job: ProfiledJob, { links, topology }: HardwareFile): { readonly [axis: string]: GroupSituation } =>
  Object.fromEntries(
    Object.entries(job.groups()).map(([axis, { situation, groups }]) => {
      const hosts = hostsOfGroup(groups[0]!, topology); // groups of an axis are alike
      return [axis, { ...situation, link: links, hosts, sharesMemory: situation.sharesMemory && hosts.length === 1 }];
    }),
  );
