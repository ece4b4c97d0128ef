/**
 * Number of 32-bit words shared by a clock and its alarm thread. The three words are a counter of how often the alarm
 * was armed, the alarm's due time, and a counter of how often the alarm fired.
 */
export const alarmWords = 3;
export const armedAt = 0;
/** Index of the word with the due time: the lowest 32 bits of the number of microseconds since the epoch. */
export const dueAt = 1;
export const firedAt = 2;
