/**
 * Hands values to listeners in order. What comes before there is a listener waits for the first one, so nothing is
 * missed between a promise that resolves and the callback that is registered after it. A listener's error is its own:
 * it does not reach who emits.
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
