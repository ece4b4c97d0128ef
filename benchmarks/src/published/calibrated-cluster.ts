import type { Cluster } from "./cluster.ts";

/**
 * Cluster parameters from `calibrateCluster(cells)`, rounded. A slow test, and the command of every page, repeat the
 * calibration. Each node has 4 GPUs with PCIe and no NVLink, and its slowest link reaches 4.8 GB/s. 10 Gbit/s Ethernet
 * reaches 1.14 of 1.25 GB/s. 100 Gbit/s Ethernet by TCP reaches 2.4 of 12.5 GB/s with two nodes, and 4 % less per
 * doubling of nodes.
 */
export const calibratedCluster: Cluster = {
  nodeSecondsPerByte: 2.081e-10,
  nodeRingStepSeconds: 1.121e-5,
  slowdownWhileComputing: 2.763,
  backwardShare: 0.5969,
  negotiationSeconds: { images: 2.142e-3, text: 5.368e-4 },
  serverStartSeconds: 9.849e-5,
  networks: {
    "10GbE": {
      ringStepSeconds: 1.147e-5,
      ringSecondsPerByte: 8.775e-10,
      ringGrowthPerDoubling: 0,
      serverSecondsPerByte: 7.539e-10,
    },
    "100GbIB": {
      ringStepSeconds: 4.294e-6,
      ringSecondsPerByte: 0,
      ringGrowthPerDoubling: 0,
      serverSecondsPerByte: 2.296e-10,
    },
    "100GbE": {
      ringStepSeconds: 1.334e-5,
      ringSecondsPerByte: 4.101e-10,
      ringGrowthPerDoubling: 0.0382,
      serverSecondsPerByte: 3.693e-10,
    },
  },
};
