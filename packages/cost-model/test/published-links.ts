import type { LinkModel } from "../src/index.ts";

/** A published fit of a whole all-reduce. */
export interface PublishedLink extends LinkModel {
  readonly network: string;
  readonly worldSize: number;
}

/** Source: constants in the repositories of MG-WFBP (github.com/HKBU-HPML/MG-WFBP) and of DeAR (github.com/lzhangbv/dear_pytorch), as measured there. */
export const publishedLinks: readonly PublishedLink[] = [
  { network: "4 GPUs of a node", worldSize: 2, startupSeconds: 2.5547e-6, secondsPerByte: 9.8375e-11 },
  { network: "4 GPUs of a node", worldSize: 4, startupSeconds: 4.2043e-5, secondsPerByte: 2.0589e-10 },
  { network: "56 Gbit/s InfiniBand", worldSize: 8, startupSeconds: 9.7537e-5, secondsPerByte: 3.0568e-10 },
  { network: "56 Gbit/s InfiniBand", worldSize: 16, startupSeconds: 2.3584e-4, secondsPerByte: 4.0595e-10 },
  { network: "10 Gbit/s Ethernet", worldSize: 8, startupSeconds: 5.2303e-4, secondsPerByte: 8.5707e-10 },
  { network: "10 Gbit/s Ethernet", worldSize: 16, startupSeconds: 9.081e-4, secondsPerByte: 7.3957e-10 },
  { network: "1 Gbit/s Ethernet", worldSize: 8, startupSeconds: 4e-3, secondsPerByte: 1.5e-8 },
];

/** The sizes at which they were measured: 63 of them, 32 KiB to 2 MiB. */
export const publishedSizes: readonly number[] = Array.from({ length: 63 }, (_, i) => 4 * 8 * 1024 * (i + 1));

/** All-reduce of MPI on 8 nodes over 10 Gbit/s Ethernet, bytes and microseconds. Source: B-Caffe (github.com/hclhkbu/B-Caffe, `logdata/allreduce8.log`; BSD-2-Clause). */
export const mpiOn8Nodes: readonly (readonly [bytes: number, microseconds: number])[] = [
  [4, 82.3],
  [64, 71.5],
  [512, 87.1],
  [2048, 157.6],
  [8192, 182],
  [12_288, 791.8],
  [16_384, 884.2],
  [32_768, 997.1],
  [65_536, 1110.5],
  [131_072, 1332.5],
  [262_144, 1639.3],
  [524_288, 3121],
  [786_432, 3493.9],
  [1_048_576, 4678.9],
];
