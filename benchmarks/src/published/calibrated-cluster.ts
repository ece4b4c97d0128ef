import type { Cluster } from "./cluster.ts";

/**
 * What `calibrateCluster(cells)` finds, rounded: a full test and every page find it anew. 4 GPUs a node, PCIe without
 * NVLink: 4.8 GB/s through its slowest link; over 10 Gbit/s 1.14 GB/s of 1.25, over 100 Gbit/s by TCP 2.4 GB/s of 12.5.
 */
export const calibratedCluster: Cluster = {
  nodeSecondsPerByte: 2.081e-10,
  nodeRingStepSeconds: 1.155e-5,
  slowdownWhileComputing: 2.724,
  backwardShare: 0.5971,
  negotiationSeconds: { images: 2.143e-3, text: 5.375e-4 },
  serverStartSeconds: 1.008e-4,
  networks: {
    "10GbE": { ringStepSeconds: 1.147e-5, ringSecondsPerByte: 8.775e-10, serverSecondsPerByte: 7.535e-10 },
    "100GbIB": { ringStepSeconds: 4.377e-6, ringSecondsPerByte: 0, serverSecondsPerByte: 2.296e-10 },
    "100GbE": { ringStepSeconds: 1.38e-5, ringSecondsPerByte: 4.176e-10, serverSecondsPerByte: 3.693e-10 },
  },
};
