/**
 * Returns a function that computes an exponential moving average with bias correction: `s ← d·s + (1 − d)·y`, divided
 * by `1 − dᵗ` like Adam's moments (arXiv 1412.6980, §3).
 */
export const smoothing = (decay: number): ((value: number) => number) => {
  let mean = 0;
  let weight = 0;
  return (value) => {
    mean = decay * mean + (1 - decay) * value;
    weight = decay * weight + (1 - decay);
    return mean / weight;
  };
};
