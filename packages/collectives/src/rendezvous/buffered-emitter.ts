/**
 * Delivers values to listeners in order. Values emitted before the first listener is registered are kept for it, so
 * that no value is lost between the resolution of a promise and a listener registered after it. An exception of a
 * listener does not reach the emitting code.
 */
export class BufferedEmitter<Value> {
  readonly #listeners: ((value: Value) => void)[] = [];
  #waiting: Value[] = [];

  emit(value: Value): void {
    if (this.#listeners.length === 0) this.#waiting.push(value);
    else for (const listener of this.#listeners) queueMicrotask(() => listener(value));
  }

  listen(listener: (value: Value) => void): void {
    this.#listeners.push(listener);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const value of waiting) queueMicrotask(() => listener(value));
  }
}
