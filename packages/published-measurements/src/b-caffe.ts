/** Traced times of one layer of GoogLeNet in microseconds, for weight and bias together. */
interface TracedLayer {
  /** Number of elements of weight and bias together. */
  readonly elements: number;
  readonly weightElements: number;
  readonly biasElements: number;
  /** Microseconds of the backward pass in the 8-node run. */
  readonly backward: number;
  /**
   * Microseconds of the backward pass by run. `unnamed` is the run whose file name does not contain a number of nodes.
   */
  readonly backwardOf: { readonly unnamed: number; readonly 2: number; readonly 8: number };
  /**
   * Microseconds of the layer's all-reduce by run. On 2 and 4 nodes, weight and bias were sent separately, and the
   * value is the sum of both times. On 8 nodes, one message contained weight and bias.
   */
  readonly allReduce: { readonly unnamed: number; readonly 2: number; readonly 4: number; readonly 8: number };
  /** Microseconds of the all-reduces of weight and bias, for runs with separate messages. */
  readonly allReduceSeparate: { readonly unnamed: readonly [number, number]; readonly 2: readonly [number, number] };
  /**
   * Microseconds of the layer's all-reduce in a second measurement on 8 nodes, after the run had chosen its buckets.
   */
  readonly again: number;
}

/**
 * Layer times of GoogLeNet with both auxiliary heads, measured with batch 64 per GPU on K80 GPUs over 10 Gbit/s
 * Ethernet. There are 64 rows, one per layer, in the order of the forward pass. The columns are the number of elements
 * of weight and bias; the backward time in the unnamed run, on 2 nodes and on 8 nodes; and the all-reduce time in the
 * unnamed run, on 2, 4 and 8 nodes, and in a second measurement on 8 nodes. Each run has one iteration. Outliers are
 * included (layer 16 on 4 nodes). For 4 nodes only the sums per layer are known, and no fit uses them.
 *
 * Source: measurements published with B-Caffe (github.com/hclhkbu/B-Caffe, `logdata/tmpcomm.log`, `tmp2comm.log`,
 * `tmp4comm.log`, `tmp8comm.log`; BSD-2-Clause).
 */
const rows: readonly string[] = [
  "9408+64 14744.1/14690.2/15143.7 408+139/298+106/603/1169/1231",
  "4096+64 3778.78/4008.8/3825.38 344+165/224+99/562/1071/1242",
  "110592+192 20400/20741/21038.8 1265+186/966+153/1784/2622/2405",
  "12288+64 2618.5/2646.14/2641.02 798+160/336+103/656/1662/1278",
  "18432+128 2918.11/2910.69/3080.61 1023+154/335+155/1132/1329/1359",
  "110592+128 6027.2/6078.62/6052.77 1720+175/1004+152/2014/2232/2583",
  "3072+64 1898.88/1999.26/1952.83 816+176/267+127/545/1166/1086",
  "12800+64 1076.7/1125.95/1119.52 824+178/1195+115/658/1246/1598",
  "6144+64 1952.67/2082.05/2047.23 865+389/238+191/882/1252/1010",
  "32768+128 4281.7/4286.53/4329.54 2507+1467/512+148/1011/1895/1685",
  "32768+128 4250.3/4273.25/4242.4 1916+151/544+114/871/1522/1569",
  "221184+192 7381.02/7562.62/7513.63 3197+158/1680+180/2851/4866/4466",
  "8192+64 2559.49/2850.98/2643.9 1449+147/238+140/828/1437/1083",
  "76800+128 3027.74/3121.92/3101.5 1325+105/851+153/1602/1913/2613",
  "16384+64 3792.7/3462.94/3380.64 302+113/352+1409/652/1953/1254",
  "92160+192 4318.98/4455.84/4733.76 915+121/924+1109/1823/2162/2455",
  "46080+128 2620.58/2488.67/2681.41 563+175/963+175/18867/1792/4752",
  "179712+256 2939.07/2956.06/5296.16 1492+206/2112+135/2620/4133/4153",
  "7680+64 2621.82/1561.25/1470.69 224+112/458+191/1493/7379/1645",
  "19200+64 858.88/880.29/871.46 1684+579/3128+1645/3244/4525/1201",
  "30720+64 2120.06/2339.58/2137.12 423+93/404+230/7247/4882/4756",
  "65536+128 1471.39/1375.26/1476.58 2045+141/2239+392/4722/4155/5320",
  "2097152+1024 707.9/750.4/703.01 15059+257/14441+153/31088/32739/32246",
  "1024000+1024 469.5/468.29/460.51 6970+335/6930+163/10791/15577/17069",
  "81920+192 4005.89/3950.82/4075.14 4176+395/851+132/2971/2766/2826",
  "57344+128 3073.66/2744.03/2911.97 1747+161/625+133/3852/1958/2307",
  "225792+256 3054.11/3196.42/3050.18 4584+198/1704+135/4583/4896/4870",
  "12288+64 1722.78/1729.47/1793.25 1262+206/280+113/650/2425/1974",
  "38400+64 1407.97/1444.8/1612.45 3399+140/560+145/3784/1967/1785",
  "32768+64 2188.29/2267.07/2221.54 3235+171/499+153/1225/1571/1969",
  "65536+128 3025.79/2943.81/3096.32 3164+151/1700+118/3417/2600/3208",
  "65536+128 3129.18/2979.04/3116.74 901+103/1476+104/1865/2365/2068",
  "294912+256 3398.88/3415.14/3534.24 2353+208/2125+109/4018/7298/7970",
  "12288+64 1797.18/1794.5/1673.63 1007+196/275+120/836/1937/1895",
  "38400+64 1437.95/1579.74/1461.28 1175+425/538+138/1953/2034/1852",
  "32768+64 2492.86/2254.56/2246.59 551+186/486+352/939/2848/3109",
  "57344+128 2701.15/3041.98/2735.94 617+242/627+119/1909/1875/2358",
  "73728+192 3810.69/3714.85/3884.7 791+141/748+147/1815/3165/2839",
  "373248+320 4847.01/4923.58/4892.67 3081+235/3780+113/5398/7233/8771",
  "16384+64 2034.18/1799.78/1745.82 443+199/293+162/1082/2648/1795",
  "51200+64 1587.68/1537.82/1556.86 822+154/636+356/1500/1728/1709",
  "32768+64 2302.34/2230.85/2292.83 547+100/2053+180/1406/2323/3527",
  "67584+128 1753.7/1286.94/1424.9 1059+144/973+122/5356/4290/6401",
  "2097152+1024 707.39/714.11/703.97 16084+308/14563+153/30396/33543/30288",
  "1024000+1024 466.88/464.03/469.76 10060+391/11550+280/10441/14767/14266",
  "135168+256 5857.86/5598.43/5788.32 2442+162/4081+127/2835/3733/4017",
  "84480+192 4419.62/4277.63/4642.24 2492+350/2491+213/1747/2305/2098",
  "460800+320 5077.73/5262.59/5166.24 3384+227/5667+110/6167/7875/7699",
  "16896+64 1812.29/1800.03/3048.51 844+108/1795+187/1454/1176/1805",
  "102400+128 2574.21/2585.47/2581.73 965+185/2415+121/2955/2606/2379",
  "67584+128 3334.08/3236.06/3296.7 796+144/1930+113/2112/2189/1900",
  "212992+256 3971.46/4127.9/3990.82 1706+729/2674+711/3227/5104/4743",
  "133120+192 3201.18/3092.26/3214.59 1329+149/2838+161/2612/4124/3898",
  "460800+320 2031.62/2116.29/2036.86 3736+1389/3759+115/6716/7695/7179",
  "26624+64 1202.37/1230.05/1212.67 471+108/517+614/1630/2101/1930",
  "102400+128 1047.2/1046.56/1015.55 1023+244/907+185/2199/2479/2860",
  "106496+128 2573.66/2355.1/2499.81 1350+101/946+349/2933/2584/2354",
  "319488+384 2842.02/2911.68/2876.35 2602+258/3042+116/5043/6935/6069",
  "159744+192 3531.36/3415.65/3467.62 1468+213/2221+118/3860/4042/4151",
  "663552+384 2372/2476.96/2355.17 4861+420/4842+126/7817/10912/10878",
  "39936+64 1658.56/1585.02/1420 762+174/1593+104/1008/2515/2190",
  "153600+128 1257.98/1253.98/1250.91 1457+209/1499+115/2622/4383/4059",
  "106496+128 2528.67/2354.27/2564.19 1097+466/990+179/3064/2782/2727",
  "1024000+1024 456.42/473.44/461.09 8291+606/7973+146/13569/24282/16859",
];

const parsePair = (text: string): [number, number] => {
  const [weight, bias] = text.split("+").map(Number);
  return [weight!, bias!];
};

/** Traced times of the layers of GoogLeNet, in the order of the forward pass. */
export const tracedLayers: readonly TracedLayer[] = rows.map((row) => {
  const [elements, backward, allReduce] = row.split(" ");
  const [weightElements, biasElements] = parsePair(elements!);
  const [unnamed, on2, on8] = backward!.split("/").map(Number);
  const [pairUnnamed, pair2, four, eight, again] = allReduce!.split("/");
  const [first, second] = [parsePair(pairUnnamed!), parsePair(pair2!)];
  return {
    elements: weightElements + biasElements,
    weightElements,
    biasElements,
    backward: on8!,
    backwardOf: { unnamed: unnamed!, 2: on2!, 8: on8! },
    allReduce: { unnamed: first[0] + first[1], 2: second[0] + second[1], 4: Number(four), 8: Number(eight) },
    allReduceSeparate: { unnamed: first, 2: second },
    again: Number(again),
  };
});

/** A tensor of a gradient profile, in the format of the cost model. */
interface ProfiledTensor {
  readonly path: string;
  readonly bytes: number;
  readonly backwardSeconds: number;
  readonly forwardSeconds: number;
}

/**
 * GoogLeNet's trace as a gradient profile, last layer first. Forward passes were not traced. The profile uses half of
 * the backward time instead, as the authors' simulator does.
 */
export const googLeNet: { readonly tensors: readonly ProfiledTensor[] } = {
  tensors: tracedLayers
    .map(({ elements, backward }, layer) => ({
      path: `layer-${layer}`,
      bytes: 4 * elements,
      backwardSeconds: backward * 1e-6,
      forwardSeconds: backward * 0.5e-6,
    }))
    .reverse(),
};
