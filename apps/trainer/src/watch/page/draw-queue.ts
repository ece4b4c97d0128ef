/** Milliseconds per frame for drawing charts; remaining charts wait for the next frame. */
const budgetMilliseconds = 7;

const waiting = new Set<() => void>();
let asked = false;

const frame = (): void => {
  const began = performance.now();
  for (const draw of waiting) {
    waiting.delete(draw);
    draw();
    if (performance.now() - began > budgetMilliseconds) break;
  }
  asked = waiting.size > 0;
  if (asked) requestAnimationFrame(frame);
};

/** Draw in one of the next frames, once regardless of the number of requests. */
export const drawSoon = (draw: () => void): void => {
  waiting.add(draw);
  if (asked) return;
  asked = true;
  requestAnimationFrame(frame);
};

export const cancelDraw = (draw: () => void): void => void waiting.delete(draw);
