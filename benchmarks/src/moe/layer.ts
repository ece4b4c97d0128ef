import type { Study } from "../studies/study.ts";
import { layerPage } from "./layer-page.ts";
import { type LayerRun, planLayer } from "./layer-plan.ts";

/** Study that times one expert layer with different exchange methods, chunk counts and expert placements. */
export const moeLayerTimes: Study<LayerRun> = {
  name: "moe-layer",
  title: "A layer of experts over hosts: ways to travel, chunks, places",
  about:
    "Train a few steps of one layer of experts on ranks of two emulated hosts, with each way for tokens to travel.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  plan: planLayer,
  page: layerPage,
};
