/** Maximum time in milliseconds for drawing charts in one frame. Remaining charts are drawn in the next frames. */
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

/** Draws a chart in one of the next frames. Repeated requests before that frame draw the chart once. */
export const drawSoon = (draw: () => void): void => {
  waiting.add(draw);
  if (asked) return;
  asked = true;
  requestAnimationFrame(frame);
};

export const cancelDraw = (draw: () => void): void => void waiting.delete(draw);
