import { expertAxis } from "@skein/job/node";
import { type DeviceArray, flattenTree, InvariantError, leafPaths, shardAxes, unflattenTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { type DeviceState, type Parts, stateSharding } from "../step/train-state.ts";

/** Paths in the state of a run that belong to one layer of experts. */
export interface ExpertLayer {
  /** Name of the layer, such as `block-1`. */
  readonly name: string;
  /** Paths of arrays with one row per expert of a rank: parameters, and the optimizer's state for these parameters. */
  readonly rows: readonly string[];
  /** State path of the tensor `placeOf_E`: slot index of each expert, i32 [E]. Slots are numbered in rank order. */
  readonly places: string;
  /** State path of the tensor `meanLoad_E`: mean load per expert over recent steps, f32 [E]. */
  readonly loads: string;
}

/** Returns the expert layers of a model, in model order. Empty if the model lists no expert layers. */
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

/** Returns the leaves of a state at the given paths. */
export const leavesAt = (state: DeviceState, paths: readonly string[]): readonly DeviceArray[] => {
  const byPath = leavesByPath<DeviceArray>(state);
  return paths.map((path) => {
    const leaf = byPath.get(path);
    if (leaf === undefined) throw new InvariantError(`a state has no "${path}"`);
    return leaf;
  });
};

/** Returns the state with the leaves at some paths replaced. */
export const withLeaves = (state: DeviceState, changed: ReadonlyMap<string, DeviceArray>): DeviceState => {
  const { leaves, structure } = flattenTree<DeviceArray>(state);
  return unflattenTree(
    structure,
    leafPaths(state).map((path, i) => changed.get(path) ?? leaves[i]!),
  );
};
