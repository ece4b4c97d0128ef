export { mpiAllReduce, type PublishedLink, publishedLinks, publishedSizes } from "./all-reduce.ts";
export { googLeNet, tracedLayers } from "./b-caffe.ts";
export { factorSizes, type KfacStages, type PublishedForm, spdKfacStages } from "./spd-kfac.ts";
