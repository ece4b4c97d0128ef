import type { Readings, ShownDigits } from "../messages.ts";

const side = 28;

/** Ink with the pixels' strength on transparent paper. */
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

/** Pictures of digits with what the model reads in each; wrong ones are marked by colour, frame and word. */
export class DigitGrid {
  private readonly labels: Uint8Array;
  private readonly places: readonly {
    readonly item: HTMLLIElement;
    readonly text: HTMLSpanElement;
    readonly bar: HTMLElement;
  }[];

  constructor(list: HTMLOListElement, { pixels, labels }: ShownDigits) {
    this.labels = labels;
    this.places = Array.from(labels, (_, i) => {
      const item = document.createElement("li");
      const text = document.createElement("span");
      const bar = document.createElement("i");
      item.append(drawDigit(pixels.subarray(i * side * side, (i + 1) * side * side)), text, bar);
      return { item, text, bar };
    });
    list.replaceChildren(...this.places.map(({ item }) => item));
  }

  /** @returns how many are right. */
  show({ classes, confidences }: Readings): number {
    let right = 0;
    this.places.forEach(({ item, text, bar }, i) => {
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
