import { type Tensor, unflattenTree, flattenTree, leafPaths } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { type Layer, layerGradient, type LayerGradient, storeLayerGradient } from "./statistics/layer.ts";

/**
 * Replaces the gradient of each layer in a tree of gradients by a new gradient. Gradients outside the layers are not
 * changed.
 */
export const mapLayers = <P>(
  layers: readonly Layer[],
  gradients: P,
  fn: (layer: Layer, gradient: LayerGradient) => LayerGradient,
): P => {
  const byPath = leavesByPath<Tensor>(gradients);
  const own = new Map(byPath);
  for (const layer of layers) storeLayerGradient(layer, fn(layer, layerGradient(layer, own)), byPath);
  return unflattenTree<P>(
    flattenTree(gradients).structure,
    leafPaths(gradients).map((path) => byPath.get(path)),
  );
};
