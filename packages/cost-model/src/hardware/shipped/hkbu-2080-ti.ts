import type { LinkTimes } from "@skein/collectives";
import type { HardwareFile } from "../hardware.ts";
import { gpuReduceSecondsPerByte } from "./data-sheet-host.ts";
import { rtx2080TiDevice } from "./rtx-2080-ti.ts";

/** Published fit of an all-reduce time: a + b · M seconds for M bytes. */
interface AllReduceFit {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** Fit of the all-reduce over the four GPUs of one host, which is the same for all networks. */
const host: AllReduceFit = { startupSeconds: 4.2043e-5, secondsPerByte: 2.0589e-10 };

/** Links within a host. A ring over four GPUs sends 6 messages, each a quarter of the vector. */
const within: LinkTimes = { secondsPerMessage: host.startupSeconds / 6, secondsPerByte: (host.secondsPerByte * 4) / 6 };

/**
 * Derives the links between hosts from the difference between the all-reduce on two hosts and on one host. A two-level
 * all-reduce sends two messages between the hosts, and the full vector over each host's link.
 *
 * @param all Fit of the all-reduce over eight GPUs on two hosts.
 */
const between = (all: AllReduceFit): LinkTimes => ({
  secondsPerMessage: (all.startupSeconds - host.startupSeconds) / 2,
  secondsPerByte: all.secondsPerByte - host.secondsPerByte,
});

const fits =
  "constants in github.com/HKBU-HPML/MG-WFBP and github.com/lzhangbv/dear_pytorch: all-reduce of 4 and of 8 GPUs";

const cluster = (
  name: string,
  network: string,
  across: LinkTimes,
  source: string,
  penaltyPerFlow: number,
): HardwareFile => ({
  format: "skein-hardware",
  version: 1,
  name,
  description: `16 hosts of 4 × RTX 2080 Ti, ${network}; as published`,
  device: rtx2080TiDevice,
  topology: { ranks: 64, ranksPerHost: 4 },
  links: {
    within,
    across,
    reduceSecondsPerByte: gpuReduceSecondsPerByte(rtx2080TiDevice),
    source,
    contention: { penaltyPerFlow },
  },
});

const tenGigabit = between({ startupSeconds: 5.2303e-4, secondsPerByte: 8.5707e-10 });

/** Cluster with 10 Gbit/s Ethernet. Contention b : η = 0.856 : 0.235, from the online admission of arXiv 2002.10105. */
export const hkbu2080Ti10GbE: HardwareFile = cluster(
  "hkbu-2080ti-10gbe",
  "10 Gbit/s Ethernet",
  tenGigabit,
  fits,
  0.235 / 0.856,
);

/**
 * Cluster with 100 Gbit/s InfiniBand. The authors call this network "RDMA"; the values were measured on their 56 Gbit/s
 * InfiniBand.
 */
export const hkbu2080Ti100GbIb: HardwareFile = cluster(
  "hkbu-2080ti-100gbib",
  "100 Gbit/s InfiniBand",
  between({ startupSeconds: 9.7537e-5, secondsPerByte: 3.0568e-10 }),
  `${fits}, there for 56 Gbit/s; contention not measured`,
  0,
);

/**
 * Links between hosts with 100 Gbit/s TCP. There is no published fit. Derived from the throughputs of BERT-Large
 * without overlap (github.com/HKBU-HPML/ddl-benchmarks, 29 May 2020, BSP-A2A, 8 samples per GPU): 52.90 samples/s on
 * one host, 55.80 on two hosts. So the link of the second host adds 0.542 s for 336 million f32 gradients.
 */
const hundredGigabitTcp: LinkTimes = {
  secondsPerMessage: tenGigabit.secondsPerMessage,
  secondsPerByte: ((8 * 8) / 55.8 - (4 * 8) / 52.9) / (4 * 336e6),
};

/** Cluster with 100 Gbit/s Ethernet over TCP. */
export const hkbu2080Ti100GbE: HardwareFile = cluster(
  "hkbu-2080ti-100gbe",
  "100 Gbit/s Ethernet over TCP",
  hundredGigabitTcp,
  `within and start of a message: ${fits}, 10 Gbit/s; bytes: BERT-Large on 4 and 8 GPUs, github.com/HKBU-HPML/ddl-benchmarks; contention not measured`,
  0,
);
