import type { GroupSelectionOptions } from "@skein/collectives";
import { collectivePricers, type CollectivePricer } from "@skein/cost-model/pricing";
import { type HardwareFile, hostsOfGroup, linksOfGroup } from "@skein/cost-model/hardware";
import type { GradientTensor, ProfiledJob } from "skein-train/profiling";

/** Returns the process groups of a job that runs on given hardware, by mesh axis. */
export const groupsOn = (
  job: Pick<ProfiledJob, "groups">,
  hardware: HardwareFile,
): { readonly [axis: string]: GroupSelectionOptions } =>
  Object.fromEntries(
    Object.entries(job.groups()).map(([axis, { situation, groups }]) => {
      const [group] = groups as [readonly number[]]; // the groups of an axis are equivalent
      const hosts = hostsOfGroup(group, hardware.topology);
      const link = linksOfGroup(group, hardware);
      return [axis, { ...situation, link, hosts, sharesMemory: situation.sharesMemory && hosts.length === 1 }];
    }),
  );

/** Returns the largest group over which a gradient is averaged. */
export const widestGroup = (
  gradients: readonly GradientTensor[],
  groups: { readonly [axis: string]: GroupSelectionOptions },
): GroupSelectionOptions =>
  gradients
    .map(({ axis }) => groups[axis]!)
    .reduce((widest, group) => (group.worldSize > widest.worldSize ? group : widest));

/** Builds cost functions for collectives, one per mesh axis, for the group sizes of a job. */
export const pricersOn = (
  job: Pick<ProfiledJob, "groups">,
  hardware: HardwareFile,
): { readonly [axis: string]: CollectivePricer } =>
  collectivePricers(groupsOn(job, hardware), hardware.device.readBack);
