import { type DeviceArray, flattenTree, InvariantError, leafPaths, shardAxes, unflattenTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { expertAxis } from "../job/mesh.ts";
import { type DeviceState, type Parts, stateSharding } from "../step/train-state.ts";

/** Paths of a layer of experts in the state of a run. */
export interface ExpertLayer {
  /** Name, such as `block-1`. */
  readonly name: string;
  /** Paths of leaves with a row per expert of a rank: parameters, and the optimizer's state for them. */
  readonly rows: readonly string[];
  /** Path in the layer's own state: i32 [E], slot of each expert. */
  readonly places: string;
  /** Path in the layer's own state: f32 [E], mean load of each expert over recent steps. */
  readonly loads: string;
}

/** Layers of experts of a model, in order. Empty: the model does not list any. */
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

/** Replace leaves of a state at some paths. */
export const withLeaves = (state: DeviceState, changed: ReadonlyMap<string, DeviceArray>): DeviceState => {
  const { leaves, structure } = flattenTree<DeviceArray>(state);
  return unflattenTree(
    structure,
    leafPaths(state).map((path, i) => changed.get(path) ?? leaves[i]!),
  );
};
