import type { GradientProfile } from "../../src/index.ts";

/** One layer of a trace: weight and bias together, times in microseconds. */
interface TracedLayer {
  readonly elements: number;
  readonly backward: number;
  /** All-reduce of the layer by itself, as measured on 2, 4 and 8 nodes. */
  readonly allReduce: { readonly 2: number; readonly 4: number; readonly 8: number };
}

/**
 * GoogLeNet with both auxiliary heads, batch 64 per GPU, K80 GPUs, 10 Gbit/s Ethernet: 64 layers in the order of the forward pass, elements / backward
 * of the 8-node run / all-reduce on 2 / 4 / 8 nodes. One iteration each, so outliers are left as they are (layer 16 on 4 nodes).
 *
 * Source: measurements published with B-Caffe (github.com/hclhkbu/B-Caffe, `logdata/tmp2comm.log`, `tmp4comm.log`, `tmp8comm.log`; BSD-2-Clause).
 */
const rows: readonly string[] = [
  "9472/15144/404/603/1169 4160/3825/323/562/1071 110784/21039/1119/1784/2622 12352/2641/439/656/1662",
  "18560/3081/490/1132/1329 110720/6053/1156/2014/2232 3136/1953/394/545/1166 12864/1120/1310/658/1246",
  "6208/2047/429/882/1252 32896/4330/660/1011/1895 32896/4242/658/871/1522 221376/7514/1860/2851/4866",
  "8256/2644/378/828/1437 76928/3102/1004/1602/1913 16448/3381/1761/652/1953 92352/4734/2033/1823/2162",
  "46208/2681/1138/18867/1792 179968/5296/2247/2620/4133 7744/1471/649/1493/7379 19264/871/4773/3244/4525",
  "30784/2137/634/7247/4882 65664/1477/2631/4722/4155 2098176/703/14594/31088/32739 1025024/461/7093/10791/15577",
  "82112/4075/983/2971/2766 57472/2912/758/3852/1958 226048/3050/1839/4583/4896 12352/1793/393/650/2425",
  "38464/1612/705/3784/1967 32832/2222/652/1225/1571 65664/3096/1818/3417/2600 65664/3117/1580/1865/2365",
  "295168/3534/2234/4018/7298 12352/1674/395/836/1937 38464/1461/676/1953/2034 32832/2247/838/939/2848",
  "57472/2736/746/1909/1875 73920/3885/895/1815/3165 373568/4893/3893/5398/7233 16448/1746/455/1082/2648",
  "51264/1557/992/1500/1728 32832/2293/2233/1406/2323 67712/1425/1095/5356/4290 2098176/704/14716/30396/33543",
  "1025024/470/11830/10441/14767 135424/5788/4208/2835/3733 84672/4642/2704/1747/2305 461120/5166/5777/6167/7875",
  "16960/3049/1982/1454/1176 102528/2582/2536/2955/2606 67712/3297/2043/2112/2189 213248/3991/3385/3227/5104",
  "133312/3215/2999/2612/4124 461120/2037/3874/6716/7695 26688/1213/1131/1630/2101 102528/1016/1092/2199/2479",
  "106624/2500/1295/2933/2584 319872/2876/3158/5043/6935 159936/3468/2339/3860/4042 663936/2355/4968/7817/10912",
  "40000/1420/1697/1008/2515 153728/1251/1614/2622/4383 106624/2564/1169/3064/2782 1025024/461/8119/13569/24282",
];

export const tracedLayers: readonly TracedLayer[] = rows
  .flatMap((row) => row.split(" "))
  .map((layer) => {
    const [elements, backward, on2, on4, on8] = layer.split("/").map(Number);
    return { elements: elements!, backward: backward!, allReduce: { 2: on2!, 4: on4!, 8: on8! } };
  });

/** The trace as a profile, last layer first. Forward passes were not traced; the authors' simulator takes half of backward. */
export const googLeNet: GradientProfile = {
  tensors: tracedLayers
    .map(({ elements, backward }, layer) => ({
      path: `layer-${layer}`,
      bytes: 4 * elements,
      backwardSeconds: backward * 1e-6,
      forwardSeconds: backward * 0.5e-6,
    }))
    .reverse(),
};
