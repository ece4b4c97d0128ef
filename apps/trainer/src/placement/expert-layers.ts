import { type DeviceArray, flattenTree, InvariantError, leafPaths, shardAxes, unflattenTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { expertAxis } from "../job/mesh.ts";
import { type DeviceState, type Parts, stateSharding } from "../step/train-state.ts";

/** Where a layer of experts lies in the state of a run. */
export interface ExpertLayer {
  /** Such as `block-1`. */
  readonly name: string;
  /** Leaves with a row for each expert of a rank: parameters, and what the optimizer keeps for them. */
  readonly rows: readonly string[];
  /** Of the layer's own state: i32 [E], place of each expert. */
  readonly places: string;
  /** Of the layer's own state: f32 [E], mean of the loads of recent steps. */
  readonly loads: string;
}

/** The layers of experts of a model that tells them, in order. */
export const expertLayersOf = ({ model, sharding }: Parts, state: DeviceState): readonly ExpertLayer[] => {
  const shardOf = stateSharding(sharding, state.params);
  const paths = leafPaths(state).filter((path) => shardAxes(shardOf(path)).includes(expertAxis));
  return (model.experts?.layers ?? []).map(({ name, params, state: own }) => ({
    name,
    rows: paths.filter((path) => path.includes(`.${params}.`)),
    places: `model.${own}.placeOf_E`,
    loads: `model.${own}.meanLoad_E`,
  }));
};

/** Leaves of a state by path. */
export const leavesAt = (state: DeviceState, paths: readonly string[]): readonly DeviceArray[] => {
  const byPath = leavesByPath<DeviceArray>(state);
  return paths.map((path) => {
    const leaf = byPath.get(path);
    if (leaf === undefined) throw new InvariantError(`a state has no "${path}"`);
    return leaf;
  });
};

/** The state with other leaves at some paths. */
export const withLeaves = (state: DeviceState, changed: ReadonlyMap<string, DeviceArray>): DeviceState => {
  const { leaves, structure } = flattenTree<DeviceArray>(state);
  return unflattenTree(
    structure,
    leafPaths(state).map((path, i) => changed.get(path) ?? leaves[i]!),
  );
};
