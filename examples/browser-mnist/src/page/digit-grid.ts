import type { Readings, ShownDigits } from "../messages.ts";

const side = 28;

/** Draws a digit on a transparent background, with pixel values as opacity. */
const drawDigit = (pixels: Uint8Array): HTMLCanvasElement => {
  const canvas = document.createElement("canvas");
  canvas.width = side;
  canvas.height = side;
  canvas.ariaHidden = "true";
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(side, side);
  pixels.forEach((strength, i) => (image.data[4 * i + 3] = strength));
  context.putImageData(image, 0, 0);
  return canvas;
};

/** Images of digits with the model's predictions. Wrong predictions are marked by color, frame and text. */
export class DigitGrid {
  private readonly labels: Uint8Array;
  private readonly cells: readonly {
    readonly item: HTMLLIElement;
    readonly text: HTMLSpanElement;
    readonly bar: HTMLElement;
  }[];

  constructor(list: HTMLOListElement, { pixels, labels }: ShownDigits) {
    this.labels = labels;
    this.cells = Array.from(labels, (_, i) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      const bar = document.createElement("i");
      item.append(drawDigit(pixels.subarray(i * side * side, (i + 1) * side * side)), text, bar);
      return { item, text, bar };
    });
    list.replaceChildren(...this.cells.map(({ item }) => item));
  }

  /** Shows predictions. @returns the number of correct predictions. */
  show({ classes, confidences }: Readings): number {
    let right = 0;
    this.cells.forEach(({ item, text, bar }, i) => {
      const label = this.labels[i]!;
      const isRight = classes[i] === label;
      if (isRight) right++;
      const percent = Math.round(100 * confidences[i]!);
      item.className = isRight ? "right" : "wrong";
      text.textContent = isRight ? `${label}` : `${classes[i]} ≠ ${label}`;
      item.title = isRight
        ? `a ${label}, read right (${percent} % sure)`
        : `a ${label}, wrongly read as ${classes[i]} (${percent} % sure)`;
      bar.style.width = `${percent}%`;
    });
    return right;
  }
}
