/** Published linear fit of all-reduce times: start-up time, and time per byte of the reduced array. */
export interface PublishedLink {
  readonly network: string;
  readonly worldSize: number;
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/**
 * Published linear fits of all-reduce times on several networks.
 *
 * Source: constants in the repositories of MG-WFBP (github.com/HKBU-HPML/MG-WFBP) and of DeAR
 * (github.com/lzhangbv/dear_pytorch), as measured by their authors.
 */
export const publishedLinks: readonly PublishedLink[] = [
  { network: "4 GPUs of a node", worldSize: 2, startupSeconds: 2.5547e-6, secondsPerByte: 9.8375e-11 },
  { network: "4 GPUs of a node", worldSize: 4, startupSeconds: 4.2043e-5, secondsPerByte: 2.0589e-10 },
  { network: "56 Gbit/s InfiniBand", worldSize: 8, startupSeconds: 9.7537e-5, secondsPerByte: 3.0568e-10 },
  { network: "56 Gbit/s InfiniBand", worldSize: 16, startupSeconds: 2.3584e-4, secondsPerByte: 4.0595e-10 },
  { network: "10 Gbit/s Ethernet", worldSize: 8, startupSeconds: 5.2303e-4, secondsPerByte: 8.5707e-10 },
  { network: "10 Gbit/s Ethernet", worldSize: 16, startupSeconds: 9.081e-4, secondsPerByte: 7.3957e-10 },
  { network: "1 Gbit/s Ethernet", worldSize: 8, startupSeconds: 4e-3, secondsPerByte: 1.5e-8 },
];

/** Message sizes of the published measurements in bytes: 63 sizes, the multiples of 32 KiB up to 2016 KiB. */
export const publishedSizes: readonly number[] = Array.from({ length: 63 }, (_, i) => 4 * 8 * 1024 * (i + 1));

/**
 * Measured times of MPI all-reduces over 10 Gbit/s Ethernet, as text. Each entry has the message size in bytes, and the
 * microseconds on 2 / 4 / 8 nodes. Of 266 measured sizes, the text contains all sizes up to 12 KiB, then one size every
 * 16 KiB.
 */
const mpiRows: readonly string[] = [
  "4 31.9/54.5/82.3, 8 32.2/50.4/68.7, 16 32.4/49.0/68.2, 32 32.3/48.8/70.3, 64 32.1/49.9/71.5, 128 32.7/49.0/74.6, 256 33.1/49.9/77.8",
  "512 34.6/52.2/87.1, 1024 41.8/53.2/101.9, 2048 71.9/55.3/157.6, 4096 69.7/62.6/161.8, 8192 67.5/71.8/182.0, 12288 126.1/223.9/791.8",
  "16384 128.1/226.1/884.2, 32768 158.1/253.6/997.1, 49152 184.9/275.1/1078.5, 65536 201.4/300.9/1110.5, 81920 228.8/333.0/1175.1",
  "98304 252.2/371.4/1218.6, 114688 263.5/410.9/1283.0, 131072 349.4/465.7/1332.5, 147456 365.1/486.7/1360.9, 163840 382.0/499.8/1392.4",
  "180224 399.5/553.9/1434.8, 196608 431.8/588.8/1466.2, 212992 446.3/594.5/1502.6, 229376 466.2/607.0/1541.6, 245760 481.7/630.3/1591.9",
  "262144 573.1/962.7/1639.3, 278528 615.5/959.7/1693.7, 294912 644.7/976.1/1725.2, 311296 661.4/986.5/1753.3, 327680 684.9/1037.8/1779.3",
  "344064 693.1/1071.3/1784.2, 360448 683.2/1062.8/1845.5, 376832 725.9/1106.5/1876.5, 393216 768.1/1153.7/1924.0, 409600 796.3/1174.7/1943.3",
  "425984 805.1/1163.0/1962.4, 442368 821.4/1228.4/1996.0, 458752 870.6/1265.2/2071.4, 475136 886.1/1281.1/2038.1, 491520 927.5/1284.7/2063.6",
  "507904 968.5/1324.8/2111.4, 524288 1030.8/1416.6/3121.0, 540672 1032.8/1422.7/3171.3, 557056 1015.0/1453.5/3229.8",
  "573440 1045.9/1455.7/3239.4, 589824 1112.5/1491.3/3252.8, 606208 1152.6/1510.2/3291.4, 622592 1161.8/1546.6/3292.9",
  "638976 1172.6/1611.1/3288.2, 655360 1231.8/1612.1/3322.4, 671744 1221.8/1631.1/3332.2, 688128 1224.1/1654.3/3370.1",
  "704512 1231.0/1683.7/3384.6, 720896 1239.5/1740.3/3368.5, 737280 1284.2/1764.7/3402.6, 753664 1348.1/1805.2/3409.6",
  "770048 1406.5/1834.0/3464.7, 786432 1434.6/1828.5/3493.9, 802816 1444.2/1831.8/3534.0, 819200 1490.3/1883.5/3553.1",
  "835584 1510.8/1906.2/3565.6, 851968 1513.2/1904.7/3628.6, 868352 1633.6/1934.1/3624.8, 884736 1623.2/1983.7/3662.1",
  "901120 1619.0/2114.6/3687.0, 917504 1616.0/2141.3/3736.9, 933888 1558.9/2202.8/3774.2, 950272 1602.3/2109.0/3833.8",
  "966656 1643.4/2101.8/3830.5, 983040 1724.0/2194.0/3887.4, 999424 1723.4/2230.0/3931.6, 1015808 1782.4/2243.4/3970.7",
  "1032192 1841.7/2244.0/4375.2, 1048576 1839.1/2252.0/4678.9",
];

type MpiSample = readonly [bytes: number, microseconds: number];

const mpiColumn = (column: number): readonly MpiSample[] =>
  mpiRows
    .flatMap((row) => row.split(", "))
    .map((sample) => {
      const [bytes, times] = sample.split(" ");
      return [Number(bytes), Number(times!.split("/")[column])] as const;
    });

/**
 * Measured times of MPI all-reduces in the OSU benchmark, by number of nodes. Source: B-Caffe
 * (github.com/hclhkbu/B-Caffe, `logdata/allreduce2.log`, `4`, `8`; BSD-2-Clause).
 */
export const mpiAllReduce: { readonly [nodes in 2 | 4 | 8]: readonly MpiSample[] } = {
  2: mpiColumn(0),
  4: mpiColumn(1),
  8: mpiColumn(2),
};
