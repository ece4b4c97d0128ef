/**
 * Number of words shared by a clock and its alarm thread: number of times the alarm was armed, its due time, number of
 * times it fired.
 */
export const alarmWords = 3;
export const armedAt = 0;
/** Index of the due time: the lowest 32 bits of the number of microseconds since the epoch. */
export const dueAt = 1;
export const firedAt = 2;
