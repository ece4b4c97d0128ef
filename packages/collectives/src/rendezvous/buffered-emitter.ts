/**
 * Delivers values to listeners in order. Values emitted before the first listener is registered are buffered for this
 * listener. Therefore no value is lost if code first awaits a promise and then registers a listener. If a listener
 * throws, the error does not reach the code that emits.
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
