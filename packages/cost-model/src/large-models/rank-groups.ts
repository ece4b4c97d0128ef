import type { GroupSelectionOptions } from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import { collectiveModelOfGroup } from "../group-collective-model.ts";
import type { HardwareFile } from "../hardware/hardware.ts";
import { hostsOfGroup } from "../hardware/hosts-of-group.ts";
import { linksOfGroup } from "../hardware/links-of-group.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";

/**
 * Predicted times of collectives along one mesh axis. The time model of each kind of collective is built on first use.
 */
export interface AxisPrices {
  readonly ranks: number;
  readonly modelOf: (kind: CollectiveKind) => CollectiveModel;
  /**
   * Returns the seconds of a collective.
   * @param bytes Size of the full vector: the larger of operand and result.
   */
  readonly secondsOf: (kind: CollectiveKind, bytes: number) => number;
}

const pricesOf = (group: GroupSelectionOptions): AxisPrices => {
  const models = new Map<CollectiveKind, CollectiveModel>();
  const modelOf = (kind: CollectiveKind): CollectiveModel => {
    const known = models.get(kind);
    if (known !== undefined) return known;
    const model =
      group.worldSize === 1 ? { startupSeconds: 0, secondsPerByte: 0 } : collectiveModelOfGroup(group, kind);
    models.set(kind, model);
    return model;
  };
  return {
    ranks: group.worldSize,
    modelOf,
    secondsOf: (kind, bytes) => (bytes === 0 ? 0 : collectiveSeconds(modelOf(kind), bytes)),
  };
};

/**
 * Builds functions that predict the times of collectives in a mesh of ranks. Neighboring ranks form a tensor-parallel
 * group. Ranks with equal indices in their tensor-parallel groups form a data-parallel group. Data-parallel groups on
 * one host send at the same time, and share the host's link.
 *
 * @returns predictions for the groups of rank 0, which represent all groups.
 */
export const axisPrices = (
  { topology, links }: HardwareFile,
  tensorParallel: number,
): { readonly data: AxisPrices; readonly tensor: AxisPrices } => {
  const { ranks, ranksPerHost } = topology;
  const groupOf = (worldSize: number, stride: number, groupsPerHost: number): GroupSelectionOptions => {
    const group = Array.from({ length: worldSize }, (_, index) => index * stride);
    const hosts = hostsOfGroup(group, topology);
    const { within, across, reduceSecondsPerByte } = linksOfGroup(group, { topology, links });
    const shared = { ...across, secondsPerByte: across.secondsPerByte * groupsPerHost };
    return {
      worldSize,
      sharesMemory: false,
      hosts,
      order: "any",
      link: { within, across: shared, reduceSecondsPerByte },
    };
  };
  return {
    data: pricesOf(groupOf(ranks / tensorParallel, tensorParallel, Math.min(tensorParallel, ranksPerHost))),
    tensor: pricesOf(
      groupOf(tensorParallel, 1, Math.max(1, Math.floor(Math.min(ranks, ranksPerHost) / tensorParallel))),
    ),
  };
};
