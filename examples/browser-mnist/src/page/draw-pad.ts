import { centredDigit } from "./centred-digit.ts";
import { findElement } from "./find-element.ts";

/** Width of the pen in pixels of the drawing. */
const penWidth = 22;

/**
 * Canvas for drawing a digit, with the model's predictions. At most one request is pending; if the drawing changes in
 * the meantime, the next request is for the newest drawing.
 */
export class DrawPad {
  private readonly canvas = findElement("drawing", HTMLCanvasElement);
  private readonly verdict = findElement("drawing-answer", HTMLElement);
  private readonly context: CanvasRenderingContext2D;
  private readonly rows: readonly {
    readonly bar: HTMLElement;
    readonly share: HTMLElement;
    readonly item: HTMLElement;
  }[];
  private readonly ask: (pixels: Uint8Array<ArrayBuffer>) => void;
  private asked = false;
  private changed = false;
  private ready = false;

  /**
   * Listens to the page's canvas, and creates a row for the probability of each digit.
   *
   * @param ask Requests the class probabilities of an image. The response is passed to `show`.
   */
  constructor(ask: (pixels: Uint8Array<ArrayBuffer>) => void) {
    this.ask = ask;
    this.context = this.canvas.getContext("2d", { willReadFrequently: true })!;
    Object.assign(this.context, { lineWidth: penWidth, lineCap: "round", lineJoin: "round" });
    this.rows = Array.from({ length: 10 }, (_, digit) => {
      const [item, name, bar, share] = ["li", "b", "i", "span"].map((tag) => document.createElement(tag)) as [
        HTMLElement,
        HTMLElement,
        HTMLElement,
        HTMLElement,
      ];
      name.textContent = String(digit);
      item.append(name, bar, share);
      return { item, bar, share };
    });
    findElement("answers", HTMLOListElement).replaceChildren(...this.rows.map(({ item }) => item));
    findElement("clear", HTMLButtonElement).addEventListener("click", () => this.clear());
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.showNothing();
  }

  /** Requests a new prediction, because the model has changed. */
  refresh(): void {
    this.ready = true;
    this.request();
  }

  /** Stops requesting predictions until the next `refresh`, because there is no model. */
  rest(): void {
    this.ready = false;
    this.asked = false;
  }

  show(probabilities: Float32Array): void {
    this.asked = false;
    if (this.pixels() === undefined) return this.showNothing();
    const best = probabilities.indexOf(Math.max(...probabilities));
    this.rows.forEach(({ item, bar, share }, digit) => {
      const percent = Math.round(100 * probabilities[digit]!);
      item.classList.toggle("best", digit === best);
      bar.style.setProperty("--share", `${percent}%`);
      share.textContent = `${percent} %`;
    });
    this.verdict.textContent = `The model reads a ${best} (${Math.round(100 * probabilities[best]!)} % sure).`;
    if (this.changed) this.request();
  }

  private pixels(): Uint8Array<ArrayBuffer> | undefined {
    const { width, height } = this.canvas;
    const { data } = this.context.getImageData(0, 0, width, height);
    return centredDigit({ strengths: data.filter((_, i) => i % 4 === 3), width, height });
  }

  private request(): void {
    this.changed = true;
    if (this.asked || !this.ready) return;
    this.changed = false;
    const pixels = this.pixels();
    if (pixels === undefined) return this.showNothing();
    this.asked = true;
    this.ask(pixels);
  }

  private clear(): void {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.showNothing();
  }

  private showNothing(): void {
    this.verdict.textContent = "Draw a digit with mouse, pen or finger.";
    for (const { item, bar, share } of this.rows) {
      item.classList.remove("best");
      bar.style.setProperty("--share", "0%");
      share.textContent = "–";
    }
  }

  /** Converts a pointer position to a point of the drawing. The canvas may have any size on the page. */
  private pointOf({ clientX, clientY }: PointerEvent): [number, number] {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return [((clientX - left) * this.canvas.width) / width, ((clientY - top) * this.canvas.height) / height];
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.context.beginPath();
    this.context.moveTo(...this.pointOf(event));
    this.context.lineTo(...this.pointOf(event)); // a dot
    this.context.stroke();
    this.request();
  }

  private move(event: PointerEvent): void {
    if (!this.canvas.hasPointerCapture(event.pointerId)) return;
    // A fast pointer reports only some of its positions; coalesced events contain the other positions.
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.context.lineTo(...this.pointOf(each));
    this.context.stroke();
    this.request();
  }
}
