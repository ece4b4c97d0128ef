export { mpiAllReduce, type PublishedLink, publishedLinks, publishedSizes } from "./all-reduce.ts";
export { googLeNet, tracedLayers } from "./b-caffe.ts";
export { type FsmoeLayerTimes, fsmoeLayerTimes, fsmoeModels, fsmoeTestbeds } from "./fsmoe.ts";
export {
  hierMoeDuplication,
  type HierMoeSpeedups,
  hierMoeSpeedups,
  hierMoeTestbed,
  hierMoeTokens,
} from "./hier-moe.ts";
export { factorSizes, type KfacStages, type PublishedForm, spdKfacStages } from "./spd-kfac.ts";
